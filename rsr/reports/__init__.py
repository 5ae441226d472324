"""Reports: what an iteration found, as one HTML page, as a few lines of Markdown, as a line in a table, as a picture.

    page.render_report(workspace, 2)          # one self-contained page; one file a section beside it
    loop_picture.loop_figure(workspace)       # all iterations in one picture
    summary_markdown(workspace, 2)            # for whoever shows Markdown, such as Prefect
    chain_table(workspace.rows())             # for the terminal

Everything here is a function from files to text or picture, and a missing piece is said to be missing. `page` and
`loop_picture` load matplotlib and MuJoCo and are imported by those who draw. May import every room but pipelines
and realities: what hides in a stand-in is not for reports.
"""

from rsr.common.facade import lazy

__getattr__, __dir__, __all__ = lazy(__name__, __file__)
