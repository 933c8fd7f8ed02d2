#!/bin/bash
# Opens pages of --html in headless Chromium, at the widths of a desk and of telephones, and fails if
# a label of a picture overlaps another, is cut off or is too small to read, if a picture has to be
# scrolled, or if the page is wider than the window. Prints them, too, where there is pdftotext.
#
#   pages_in_a_browser.sh SHARDTOOL SAMPLES
set -u
program=$(realpath "$1") samples=$(realpath "$2")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || { echo "SKIPPED: there is no Chromium"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

"$program" split "$samples/tiny-llama" --tp 2 -o out -q > /dev/null || exit 1
"$program" plan "$samples/tiny-llama" --tp 8 --budget 100kB --context 64 --html small.html -q --exit-zero > /dev/null || exit 1
"$program" plan "$samples/tiny-llama" --mesh dp=4,tp=8 --html replicas.html -q > /dev/null || exit 1
"$program" plan out --to-mesh tp=8 --html reshard.html --what-if 1,2,4 -q > /dev/null || exit 1
load="--profile h100-sxm --prompt-len 64 --output-len 32"
"$program" plan search "$samples/tiny-llama" $load --devices 1,2,4 --concurrency 1,4,16,64 --html search.html -q > /dev/null || exit 1
"$program" plan search "$samples/tiny-llama" $load --devices 1,2,3,4 --concurrency 64 --kv-dtype bf16,fp8 --sequence-parallel \
  --objective user --tpot 0.4 --html limit.html -q > /dev/null || exit 1
"$program" plan search "$samples/tiny-llama" $load --devices 1 --concurrency 1 --tpot 0.001 --exit-zero --html none.html -q > /dev/null || exit 1
train="--train --profile h100-sxm --sequence 128 --batch 16"
"$program" plan search "$samples/tiny-llama" $train --devices 1,2,4 --micro-batch 1,2 --html train.html -q > /dev/null || exit 1
"$program" plan search "$samples/tiny-llama" $train --devices 2 --pp 2 --budget 3500KiB --html stages_of_train.html -q > /dev/null || exit 1
"$program" plan search "$samples/tiny-llama" $train --devices 1 --budget 1MiB --exit-zero --html no_train.html -q > /dev/null || exit 1
"$program" plan out --to-mesh tp=4 -o a.json -q && "$program" plan out --to-mesh tp=8 -o b.json -q || exit 1
cost="--context 64 --prompt-len 64 --profile h100-sxm -q --exit-zero"
"$program" plan "$samples/tiny-llama" --mesh pp=2,tp=2 --budget 90kB $cost --html stages.html > /dev/null || exit 1
"$program" plan "$samples/tiny-llama" --mesh tp=8 --budget 200kB $cost --html eight.html > /dev/null || exit 1
# The status is 1 since the plans differ.
"$program" plan diff a.json b.json --html diff.html -q > /dev/null
"$program" plan diff stages.html eight.html --html diff_of_pages.html -q > /dev/null
"$program" plan diff small.html replicas.html --html diff_of_replicas.html -q > /dev/null
for page in diff diff_of_pages diff_of_replicas; do [ -f $page.html ] || exit 1; done
"$program" inspect out --html inspect.html -q > /dev/null || exit 1
"$program" check out --html check.html -q > /dev/null || exit 1
"$program" validate out --reference "$samples/tiny-llama" --html validate.html -q > /dev/null || exit 1

read -r -d '' look <<'JS'
<script>
const problems = [];
const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
for (const svg of document.querySelectorAll('svg[viewBox]')) {
  const frame = svg.getBoundingClientRect();
  if (frame.width == 0) continue;  // not shown at this width
  const scale = frame.width / svg.viewBox.baseVal.width;
  const labels = [...svg.querySelectorAll('text')];
  const boxes = labels.map(label => label.getBoundingClientRect());
  boxes.forEach((box, i) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      problems.push('cut off: ' + labels[i].textContent);
    const size = scale * parseFloat(getComputedStyle(labels[i]).fontSize);
    if (size < 7.5) problems.push('too small, ' + size.toFixed(1) + ' px: ' + labels[i].textContent);
    for (let j = 0; j < i; ++j)
      if (!apart(box, boxes[j])) problems.push('overlap: ' + labels[j].textContent + ' and ' + labels[i].textContent);
  });
}
for (const figure of document.querySelectorAll('figure')) {
  const name = figure.querySelector('svg').getAttribute('aria-label');
  const shown = [...figure.querySelectorAll('svg')].filter(svg => svg.getBoundingClientRect().width > 0);
  if (figure.scrollWidth > figure.clientWidth + 1) problems.push('scrolls: ' + name);
  if (shown.length != 1 && !figure.closest('details:not([open])')) problems.push(shown.length + ' drawings of ' + name);
}
if (document.documentElement.scrollWidth > window.innerWidth) problems.push('the page is ' + document.documentElement.scrollWidth + ' wide');
const page = location.pathname.split('/').pop() + ' at ' + window.innerWidth;
parent.postMessage(['looked at ' + page, ...problems.map(problem => page + ': ' + problem)].join('\n') + '\n', '*');
</script>
JS
# A window of Chromium is at least 500 wide, so pages are looked at in frames.
echo "<pre></pre><script>addEventListener('message', e => document.querySelector('pre').append(e.data))</script>" > frames.htm
wanted=0
for page in *.html; do
  { cat "$page"; printf '%s\n' "$look"; } > "seen-$page"
  for width in 1100 500 400; do
    echo "<iframe style='width:${width}px;height:2000px;border:0' src='seen-$page'></iframe>" >> frames.htm
    wanted=$((wanted + 1))
  done
done
"$browser" --headless --no-sandbox --disable-gpu --window-size=1200,2000 --virtual-time-budget=60000 \
  --dump-dom "file://$scratch/frames.htm" > dom 2> browser.log
grep -o 'looked at seen-.*' dom > looked
grep '^seen-.*: ' dom > problems
[ "$(wc -l < looked)" = "$wanted" ] || { echo "the browser opened $(wc -l < looked) of $wanted pages"; cat browser.log; exit 1; }
status=0
[ ! -s problems ] || { cat problems; status=1; }

# On paper no page is empty, and none ends with a heading.
command -v pdftotext > /dev/null || { echo "pages on paper are not looked at: there is no pdftotext"; exit $status; }
for page in {small,reshard,search,train,stages,diff,inspect,check,validate}.html; do
  "$browser" --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf=page.pdf "file://$scratch/$page" 2> browser.log
  pdftotext -layout page.pdf page.txt || { echo "$page was not printed"; cat browser.log; exit 1; }
  grep -o '<h[23][^>]*>[^<]*' "$page" | sed 's/<[^>]*>//' > headings
  # Every paper page ends with a form feed.
  while IFS= read -r -d $'\f' paper; do
    last=$(grep '[^[:space:]]' <<< "$paper" | tail -n 1 | sed 's/^ *//; s/ *$//')
    [ -n "$last" ] || { echo "$page has an empty page on paper"; status=1; }
    ! grep -qxF -- "$last" headings || { echo "$page: the heading '$last' is alone at the end of a page"; status=1; }
  done < page.txt
done
exit $status
