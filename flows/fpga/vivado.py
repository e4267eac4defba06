"""Vivado projects of designs: a Tcl script, which ends with a bitstream, and constraints (XDC)."""

from pathlib import PurePosixPath

from vitruvian.flows.fpga.place import BoardDesign, constraints
from vitruvian.flows.fpga.wrapper import TOP

#: Steps of an implementation in Vivado, with the reports that are written after each.
_SCRIPT = """\
# {name}: {description}
#
# Run: vivado -mode batch -source {name}.tcl
# The project and all results are in the folder {name} beside this file.

set here [file dirname [file normalize [info script]]]
set out [file join $here {name}]
create_project {name} $out -part {part} -force
add_files [list [file join $here {name}.v]]
add_files -fileset constrs_1 [list [file join $here {name}.xdc]]
set_property top {top} [current_fileset]
update_compile_order -fileset sources_1

proc run_step {{run args}} {{
    launch_runs $run {{*}}$args
    wait_on_run $run
    if {{[get_property PROGRESS [get_runs $run]] ne "100%"}} {{
        error "$run did not end; its log is in the folder of the project"
    }}
}}

run_step synth_1 -jobs 2
run_step impl_1 -to_step write_bitstream -jobs 2

open_run impl_1
report_utilization -hierarchical -file [file join $out utilization.txt]
report_timing_summary -file [file join $out timing.txt]
set slack [get_property SLACK [get_timing_paths -max_paths 1 -setup]]
set period [get_property PERIOD [get_clocks clk]]
puts "fmax: [format %.1f [expr {{1000.0 / ($period - $slack)}}]] MHz"
puts "bitstream: [file join $out {name}.runs impl_1 {top}.bit]"
"""


def project(work: BoardDesign) -> dict[PurePosixPath, str]:
    """Return the files of a Vivado project by name: Tcl, constraints, and Verilog."""
    script = _SCRIPT.format(
        name=work.name,
        description=work.board.description,
        part=work.board.part["name"],
        top=TOP,
    )
    return {
        PurePosixPath(f"{work.name}.tcl"): script,
        PurePosixPath(f"{work.name}.xdc"): constraints(work),
        PurePosixPath(f"{work.name}.v"): f"{work.unit_text}\n{work.top_text}",
    }
