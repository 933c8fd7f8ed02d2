#!/bin/bash
# Opens pages of --html in headless Chromium, at the widths of a desk and of a telephone, and fails
# if a label of a picture overlaps another or is cut off, or if the page is wider than the window.
# Prints them, too, where there is pdftotext.
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
  const labels = [...svg.querySelectorAll('text')];
  const boxes = labels.map(label => label.getBoundingClientRect());
  boxes.forEach((box, i) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      problems.push('cut off: ' + labels[i].textContent);
    for (let j = 0; j < i; ++j)
      if (!apart(box, boxes[j])) problems.push('overlap: ' + labels[j].textContent + ' and ' + labels[i].textContent);
  });
}
if (document.documentElement.scrollWidth > window.innerWidth) problems.push('the page is ' + document.documentElement.scrollWidth + ' wide');
document.body.innerHTML = '<pre>looked ' + document.title + '\n' + problems.join('\n') + '</pre>';
</script>
JS
status=0
for page in *.html; do
  { cat "$page"; printf '%s\n' "$look"; } > seen-$page
  for width in 1100 500; do
    found=$("$browser" --headless --no-sandbox --disable-gpu --window-size=$width,2000 \
      --dump-dom "file://$scratch/seen-$page" 2> browser.log | sed -n '/<pre>looked/,/<\/pre>/p')
    [ -n "$found" ] || { echo "the browser did not open $page"; cat browser.log; exit 1; }
    problems=$(sed -n '2,$p' <<< "$found" | sed 's/<\/pre>.*//' | grep .)
    [ -z "$problems" ] || { echo "$page at $width:"; echo "$problems"; status=1; }
  done
done

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
