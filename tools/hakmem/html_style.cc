#include <string_view>

#include "tools/hakmem/html_page.h"

namespace hakmem::tools {

const std::string_view kPageStyle = R"css(
:root {
  color-scheme: light dark;
  --sans: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  --paper: #ffffff; --soft: #f4f6f8; --ink: #14181d; --muted: #596470; --rule: #d5dae0;
  --accent: #0057b8; --granted: #0057b8; --cached: #007a52; --mapped: #6d7680; --failed: #b83200;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #12161b; --soft: #1b2128; --ink: #e8ecf0; --muted: #a0abb6; --rule: #38424d;
    --accent: #6db4ff; --granted: #6db4ff; --cached: #35c79d; --mapped: #a9b2bc; --failed: #ff9a5c;
  }
}
@media print { :root { color-scheme: light; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 var(--sans);
  overflow-wrap: anywhere; -webkit-text-size-adjust: 100%; }
header, main { max-width: 1000px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 24px; }
main { padding-bottom: 48px; }
section { margin-top: 40px; }
h1 { font-size: clamp(1.3rem, 4vw, 1.9rem); line-height: 1.25; margin: 4px 0 12px; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 8px; }
h3 { font-size: 1.02rem; margin: 22px 0 6px; }
p { margin: 0 0 12px; max-width: 76ch; }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--accent);
  outline-offset: 2px; }
code, pre { font: .86em/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }
pre { background: var(--soft); padding: 10px 12px; border-radius: 6px; margin: 4px 0 0;
  white-space: pre-wrap; }
.kicker, .muted { color: var(--muted); font-size: .88rem; }
.kicker { margin: 0; }
.sentence { font-size: 1.1rem; }
ul.remedies { list-style: none; padding: 0; margin: 0; }
.remedies li { border-left: 4px solid var(--accent); padding: 2px 0 2px 14px; margin: 0 0 14px; }
dl { display: grid; grid-template-columns: minmax(8em, max-content) minmax(0, 1fr); gap: 2px 16px;
  margin: 0; font-size: .93rem; }
dt { color: var(--muted); }
dd { margin: 0; }
ol.stack { margin: 4px 0 16px; padding-left: 2.4em; font-size: .93rem; }
ol.stack li::marker { color: var(--muted); }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; line-height: 1.4; }
th, td { text-align: right; padding: 4px 10px; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: normal; }
thead th { color: var(--muted); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 400; }
th:first-child, th.words, td.words { text-align: left; }
.rows .words { overflow-wrap: anywhere; min-width: 10.5em; }
.rows .whole { white-space: nowrap; min-width: 0; }
details.quiet figure { margin-top: 24px; }
figure { margin: 0 0 32px; }
figcaption { font-size: .95rem; margin-bottom: 18px; }
.plot { display: grid; grid-template-columns: 5.6em minmax(0, 1fr); gap: 4px 8px; font-size: .82rem;
  color: var(--muted); }
.y { display: flex; flex-direction: column; justify-content: space-between; text-align: right; }
.y span { line-height: 0; white-space: nowrap; }
.x { grid-column: 2; display: flex; justify-content: space-between; gap: 1em; }
.area { position: relative; height: 200px; }
.area svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
svg path { fill: none; stroke-width: 2px; vector-effect: non-scaling-stroke; }
svg .grid { stroke: var(--rule); stroke-width: 1px; }
svg .granted { stroke: var(--granted); }
svg .cached { stroke: var(--cached); stroke-dasharray: 6 4; }
svg .mapped { stroke: var(--mapped); stroke-dasharray: 2 3; }
svg .failed { stroke: var(--failed); stroke-width: 1.5px; }
svg .rescued { stroke: var(--failed); stroke-width: 1px; stroke-dasharray: 1 4; }
.mark { position: absolute; top: -1.15em; transform: translateX(-50%); font-size: 13px; line-height: 1.2;
  cursor: help; }
span.failed, span.rescued { color: var(--failed); }
.key { width: 30px; height: 10px; margin-right: 6px; vertical-align: middle; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; padding: 0; margin: 0 0 16px;
  font-size: .88rem; }
details { margin-top: 10px; }
summary { cursor: pointer; color: var(--accent); font-size: .9rem; }
@media (max-width: 600px) {
  header, main { padding-left: 12px; padding-right: 12px; }
  dl { grid-template-columns: minmax(0, 1fr); }
  dd { margin-bottom: 8px; }
  th, td { padding: 4px 5px; }
  table { font-size: .84rem; }
  .rows, .rows tbody { display: block; }
  .rows thead { display: none; }
  .rows tr { display: block; padding: 6px 0; border-bottom: 1px solid var(--rule); }
  .rows tbody th, .rows td { display: flex; justify-content: space-between; gap: 12px; text-align: right;
    border: 0; padding: 1px 0; }
  .rows tbody th span, .rows td span { min-width: 0; overflow-wrap: anywhere; white-space: normal; }
  .rows tbody th::before, .rows td::before { content: attr(data-title); color: var(--muted); flex: none; }
  .plot { grid-template-columns: 4.6em minmax(0, 1fr); }
}
@media print {
  @page { margin: 14mm; }
  body { font-size: 10pt; }
  header, main { max-width: none; padding: 0; }
  section { margin-top: 20px; }
  .scroll { overflow: visible; }
  figure, tr, .remedies li, dl, ol.stack { break-inside: avoid; }
  h2, h3, thead, figcaption { break-after: avoid; }
  details { display: none; }
  svg, .mark, pre { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)css";

}  // namespace hakmem::tools
