"""The report of a run: one HTML file that needs no network, or the same page live while the run goes on."""

from .content import content as content
from .live import LivePage as LivePage
from .page import render as render
from .page import write_report as write_report
