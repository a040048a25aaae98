"""The page of `tensat.html_report`: layout, markup, style and script.

Reading order: `layered_layout`, `picture` (two graphs become boxes and lines), then
`page.html`, `page.css` and `page.js`, which are put into one file.
"""
