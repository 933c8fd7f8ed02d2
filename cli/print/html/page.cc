#include "cli/print/html/page.h"

#include <fmt/format.h>

#include "cli/print/search/words.h"
#include "cli/print/text.h"
#include "lib/api/planning/page_island.h"
#include "lib/base/text.h"
#include "lib/plan/collective/collective_time.h"

namespace shardtool::cli {
namespace {

/// Colours: Okabe and Ito's, which the colour-blind tell apart ("Color universal design", 2008),
/// with a grey, and brighter ones on dark paper.
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#555;--line:#c8c8c8;--paper:#ffffff;--panel:#f6f6f4;
--c0:#0072b2;--c1:#e69f00;--c2:#009e73;--c3:#cc79a7;--c4:#56b4e9;--c5:#d55e00;--c6:#f0e442;--c7:#5c6268;--c8:#111111}
@media(prefers-color-scheme:dark){:root{--ink:#ececec;--soft:#b0b0b0;--line:#4a4a4a;--paper:#16181b;--panel:#202327;
--c0:#3d97d6;--c1:#f0b63d;--c2:#2fc79a;--c3:#e0a3c6;--c4:#8fd0f5;--c5:#e5642d;--c6:#f5e642;--c7:#6a6f78;--c8:#f4f4f4}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1.5rem;font:15px/1.5 system-ui,"DejaVu Sans",sans-serif;color:var(--ink);background:var(--paper)}
h1{font-size:1.4rem;margin:0 0 .2rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2rem 0 .6rem;border-bottom:1px solid var(--line)}
h3{font-size:.95rem;margin:1.4rem 0 .2rem;overflow-wrap:anywhere}
p{margin:.3rem 0}.soft,figcaption{color:var(--soft);font-size:.87rem}
.verdict{font-size:1.05rem;padding:.6rem .9rem;border-left:6px solid var(--c7);background:var(--panel)}
.verdict.good{border-color:var(--c2)}.verdict.bad{border-color:var(--c5)}
figure{margin:.6rem 0;overflow-x:auto}svg{max-width:100%;height:auto;display:block}svg text{fill:var(--ink);font-size:11px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));gap:0 1rem}.pair>*{min-width:0}.side{font-weight:600;font-size:.87rem}
.rules{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(28rem,100%),1fr));gap:0 1.5rem}article{min-width:0}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.87rem;margin:.4rem 0}
th,td{padding:.12rem .5rem;text-align:left;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:break-word;min-width:3em}
th{color:var(--soft);font-weight:600;vertical-align:bottom}td.name{min-width:11rem}td.brief{min-width:8rem}th.n,td.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}
code{font:.92em ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.key{display:inline-block;width:.85em;height:.85em;margin:0 .3em 0 0;vertical-align:-.08em;border:1px solid var(--ink)}
.keys{font-size:.87rem}.keys span{margin-right:1rem;white-space:nowrap}
.f0{fill:var(--c0);background:var(--c0)}.f1{fill:var(--c1);background:var(--c1)}.f2{fill:var(--c2);background:var(--c2)}
.f3{fill:var(--c3);background:var(--c3)}.f4{fill:var(--c4);background:var(--c4)}.f5{fill:var(--c5);background:var(--c5)}
.f6{fill:var(--c6);background:var(--c6)}.f7{fill:var(--c7);background:var(--c7)}.f8{fill:var(--c8);background:var(--c8)}
.part{fill-opacity:.4;stroke:var(--ink);stroke-width:.7}.dense{fill-opacity:.7;stroke-width:.15}.t0{fill-opacity:.13}.t1{fill-opacity:.26}.t2{fill-opacity:.4}.frame{fill:none;stroke:var(--ink);stroke-width:1.2}
.way{fill:none;stroke:var(--c0);stroke-width:1.5}.grid{stroke:var(--line);stroke-width:.7}.ring{fill:none;stroke:var(--ink);stroke-width:2}.barred{fill:none;stroke:var(--c5);stroke-width:1.6}.small{stroke:none;fill-opacity:.75}
.band{fill:var(--c0);fill-opacity:.13;stroke:var(--c0);stroke-width:5;stroke-opacity:.13;stroke-linejoin:round}
.rule{stroke:var(--ink);stroke-width:1.4;stroke-dasharray:5 3;fill:none}.dots{fill:none;stroke:var(--soft);stroke-dasharray:1.5 2.5}
.hatch{fill:url(#hatch)}.over{fill:url(#over)}pattern path{stroke:var(--ink);stroke-width:1;stroke-opacity:.5}#over path{stroke-width:3;stroke-opacity:.9}#over .gap{stroke:var(--paper);stroke-width:2}
.h1{background:color-mix(in srgb,var(--c0) 6%,transparent)}.h2{background:color-mix(in srgb,var(--c0) 12%,transparent)}.h3{background:color-mix(in srgb,var(--c0) 18%,transparent)}.h4{background:color-mix(in srgb,var(--c0) 24%,transparent)}.h5{background:color-mix(in srgb,var(--c0) 30%,transparent)}.h6{background:color-mix(in srgb,var(--c0) 36%,transparent)}.h7{background:color-mix(in srgb,var(--c0) 42%,transparent)}.h8{background:color-mix(in srgb,var(--c0) 48%,transparent)}
details{margin:.3rem 0}summary{cursor:pointer;color:var(--soft);font-size:.87rem}
@media print{html{font-size:12px}body{max-width:none;padding:0;font-size:12px}details::details-content{content-visibility:visible;height:auto}article details{display:none}section{break-inside:auto}figure,tr,p,article,.pair{break-inside:avoid}h2,h3,h2+p,h3+p,.side{break-after:avoid}
tr:nth-child(-n+2){break-after:avoid}tr:nth-last-child(-n+2){break-before:avoid}.wide{overflow:visible}th,td{padding:.08rem .35rem}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
svg.narrow{display:none}@media screen and (max-width:40rem){body{padding:.8rem}svg.wide-screen{display:none}svg.narrow{display:block}}
)css";

/// Pattern that charts refer to by "url(#hatch)".
constexpr std::string_view kPatterns =
    R"html(<svg width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6")html"
    R"html( patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6"/></pattern>)html"
    R"html(<pattern id="over" width="8" height="8" patternUnits="userSpaceOnUse" )html"
    R"html(patternTransform="rotate(45)"><path d="M1.5 0V8"/><path class="gap" d="M4 0V8"/></pattern></defs></svg>)html";

/// A document that may stand in a script element: "<" only occurs in its strings.
std::string island(std::string_view document) {
  std::string text;
  for (const char c : document) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

Page::Page(std::string_view title) : title_(title) {}

Page& Page::open(std::string_view element) {
  html_.open(element);
  return *this;
}

Page& Page::close() {
  html_.close();
  return *this;
}

Page& Page::begin_section(std::string_view heading) {
  html_.line_break().open("section").element("h2", heading);
  return *this;
}

Page& Page::end_section() {
  return close();
}

Page& Page::begin_verdict(std::string_view kind) {
  html_.line_break().open("p", {{"class", fmt::format("verdict {}", kind)}});
  return *this;
}

Page& Page::end_verdict() {
  return close();
}

Page& Page::note(std::string_view text) {
  html_.element("p", text, {{"class", "soft"}});
  return *this;
}

Page& Page::note_rest(size_t all, size_t shown, std::string_view things) {
  if (all <= shown) return *this;
  return note(fmt::format("The other {}{}{} are in the JSON document of this page.", all - shown,
                          things.empty() ? "" : " ", things));
}

Page& Page::shown(const JsonView& value, const std::string& text) {
  html_.element(
      "data", text,
      {{"value", value.json()}, {"data-at", value.pointer()}, {"data-value", value.json()}});
  return *this;
}

Page& Page::bytes(const JsonView& value) {
  return shown(value, format_bytes(value.count()));
}

Page& Page::count(const JsonView& value) {
  return shown(value, format_count(value.count()));
}

std::string milliseconds_text(const JsonView& value) {
  constexpr double kUsPerMs = 1e3;
  return plan::format_modelled_us(value.number() * kUsPerMs);
}

Page& Page::microseconds(const JsonView& value) {
  return shown(value, plan::format_modelled_us(value.number()));
}

Page& Page::milliseconds(const JsonView& value) {
  if (value.is_null()) return text("-");
  return shown(value, value.number() == 0 ? "0" : milliseconds_text(value));
}

Page& Page::fraction(const JsonView& value) {
  return shown(value, percent_text(value.number()));
}

Page& Page::tokens_per_second(const JsonView& value) {
  return shown(value, tokens_text(value.number()));
}

Page& Page::text(std::string_view text) {
  html_.text(text);
  return *this;
}

Page& Page::begin_table(std::initializer_list<std::string_view> titles) {
  begin_head();
  for (const std::string_view title : titles) write_title(title);
  return begin_body();
}

Page& Page::begin_table(std::span<const std::string> titles) {
  begin_head();
  for (const std::string& title : titles) write_title(title);
  return begin_body();
}

Page& Page::begin_head() {
  html_.line_break().open("div", {{"class", "wide"}}).open("table").open("thead").open("tr");
  return *this;
}

void Page::write_title(std::string_view title) {
  const bool is_number = title.starts_with('#');
  html_.element("th", title.substr(is_number ? 1 : 0), {{"class", is_number ? "n" : ""}});
}

Page& Page::begin_body() {
  html_.close().close().open("tbody");
  return *this;
}

Page& Page::end_table() {
  html_.close().close().close();
  return *this;
}

Page& Page::text_cell(std::string_view text) {
  return cell([&] { html_.text(text); });
}
Page& Page::name_cell(std::string_view text) {
  html_.element("td", text, {{"class", "name"}});
  return *this;
}
Page& Page::bytes_cell(const JsonView& value) {
  return cell([&] { bytes(value); }, true);
}
Page& Page::count_cell(const JsonView& value) {
  return cell([&] { count(value); }, true);
}
Page& Page::time_cell(const JsonView& value) {
  return cell([&] { microseconds(value); }, true);
}
Page& Page::milliseconds_cell(const JsonView& value) {
  return cell([&] { milliseconds(value); }, true);
}
Page& Page::tokens_cell(const JsonView& value) {
  return cell([&] { tokens_per_second(value); }, true);
}

std::string Page::take(std::string_view document) {
  std::string file(kPageHead);
  file += escape_html(title_) + "</title><style>";
  file += kStyle;
  file += "</style></head>\n<body>";
  file += kPatterns;
  file += html_.take();
  file += "\n";
  file += api::kIslandBegin;
  file += island(document);
  file += api::kIslandEnd;
  file += "\n</body></html>\n";
  return file;
}

}  // namespace shardtool::cli
