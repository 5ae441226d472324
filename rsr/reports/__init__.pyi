from rsr.reports.calibration import (
    disagreements as disagreements,
    in_prior_units as in_prior_units,
    picture_of_methods as picture_of_methods,
    prior_interval as prior_interval,
)
from rsr.reports.chain import (
    chain_table as chain_table,
    is_simulated as is_simulated,
    iteration_markdown as iteration_markdown,
    read_rows as read_rows,
    reality_name as reality_name,
    summary_markdown as summary_markdown,
    tuning_table as tuning_table,
    verdict_sentence as verdict_sentence,
)
from rsr.reports.collision_page import render_collision_report as render_collision_report
from rsr.reports.loop_picture import save_loop_figure as save_loop_figure
from rsr.reports.page import render_report as render_report
from rsr.reports.plan import plan_figure as plan_figure
from rsr.reports.rollouts import render_rollouts as render_rollouts
from rsr.reports.session import (
    SessionPage as SessionPage,
    examine_session as examine_session,
    known_prints as known_prints,
    page_document as page_document,
)
from rsr.reports.session_page import (
    finding_lines as finding_lines,
    headline as headline,
    render_sessions as render_sessions,
    tables as tables,
)
from rsr.reports.strikes import (
    comparison_table as comparison_table,
    push_picture as push_picture,
    push_table as push_table,
    strike_picture as strike_picture,
)
