#!/bin/bash
# Opens pages of --html in headless Chromium, light and dark, at the widths of a desk and of
# telephones, and fails if a label of a picture overlaps another, is cut off, is too small or too
# faint to read, if a picture has to be scrolled, or if the page is wider than the window. Prints
# them, too, where there is pdftotext.
#
#   pages_in_a_browser.sh SHARDTOOL SAMPLES
set -u
program=$(realpath "$1") samples=$(realpath "$2")
golden_model="${program%/cli/*}/tests/golden/golden_model"
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
# A mixture of experts, joined q|k|v and gate|up, a reshard of more ranks than have labels, training.
"$golden_model" deepseek_v3 experts && "$golden_model" phi3 joined || exit 1
"$program" plan experts --mesh ep=2,tp=2 --budget 1MB $cost --html experts.html > /dev/null || exit 1
"$program" plan joined --mesh tp=2 $cost --html joined.html > /dev/null || exit 1
"$program" plan "$samples/tiny-llama" --mesh dp=3,tp=8 --to-mesh dp=6,tp=4 --node-size 8 --html nodes.html -q > /dev/null || exit 1
"$program" plan "$samples/tiny-llama" --train --mesh pp=2,tp=2 --dp 2 --zero 1 --sequence 64 --profile h100-sxm \
  --html plan_of_train.html -q > /dev/null || exit 1
"$program" plan search experts $load --devices 1,2,4 --concurrency 1,16 --html search_experts.html -q > /dev/null || exit 1
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
const channels = colour => colour.match(/[\d.]+/g).map(Number);
const light = colour => {
  const [r, g, b] = colour.map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
// The contrast of a label with what is drawn below it (WCAG 2.2).
const contrast = (svg, label, box) => {
  let below = channels(getComputedStyle(document.body).backgroundColor);
  const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
  for (const shape of svg.querySelectorAll('rect, path, text')) {
    if (shape == label) break;
    const style = getComputedStyle(shape), area = shape.getBoundingClientRect();
    if (shape.tagName == 'text' || !style.fill.startsWith('rgb')) continue;
    if (x < area.left || x > area.right || y < area.top || y > area.bottom) continue;
    const opacity = parseFloat(style.fillOpacity);
    below = below.map((c, i) => i > 2 ? c : c * (1 - opacity) + channels(style.fill)[i] * opacity);
  }
  const [a, b] = [light(channels(getComputedStyle(label).fill)), light(below)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};
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
    const clear = contrast(svg, labels[i], box);
    if (clear < 4.5) problems.push('too faint, ' + clear.toFixed(1) + ' to 1: ' + labels[i].textContent);
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
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const page = location.pathname.split('/').pop() + ' at ' + window.innerWidth + (dark ? ', dark' : '');
parent.postMessage(['looked at ' + page, ...problems.map(problem => page + ': ' + problem)].join('\n') + '\n', '*');
</script>
JS
# A window of Chromium is at least 500 wide, so pages are looked at in frames.
echo "<meta name='color-scheme' content='light dark'><pre></pre><script>addEventListener('message', e => document.querySelector('pre').append(e.data))</script>" > frames.htm
wanted=0
for page in *.html; do
  { cat "$page"; printf '%s\n' "$look"; } > "seen-$page"
  for width in 1100 500 400; do
    echo "<iframe style='width:${width}px;height:2000px;border:0' src='seen-$page'></iframe>" >> frames.htm
    wanted=$((wanted + 1))
  done
done
status=0
for scheme in light dark; do
  [ $scheme = dark ] && colours=--blink-settings=preferredColorScheme=0 || colours=--blink-settings=preferredColorScheme=1
  "$browser" --headless --no-sandbox --disable-gpu --window-size=1200,2000 --virtual-time-budget=60000 $colours \
    --dump-dom "file://$scratch/frames.htm" > dom 2> browser.log
  grep -o 'looked at seen-.*' dom > looked
  grep '^seen-.*: ' dom > problems
  [ "$(wc -l < looked)" = "$wanted" ] || { echo "the browser opened $(wc -l < looked) of $wanted pages"; cat browser.log; exit 1; }
  [ "$(grep -c ', dark$' looked)" = "$([ $scheme = dark ] && echo "$wanted" || echo 0)" ] ||
    { echo "the pages are not $scheme"; exit 1; }
  [ ! -s problems ] || { cat problems; status=1; }
done

# On paper no page is empty, and none ends with a heading.
command -v pdftotext > /dev/null || { echo "pages on paper are not looked at: there is no pdftotext"; exit $status; }
for page in {small,reshard,search,train,stages,experts,joined,plan_of_train,diff,inspect,check,validate}.html; do
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
