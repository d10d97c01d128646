"""An example for ReFrame: the roofs of a node as a regression test, PASS or FAIL for each device.

reframe -c postproc/reframe/roofsweep_checks.py -r -S manifest=$PWD/sweeps/roofs.ini -S targets=$PWD/sweeps/targets.ini

-S num_tasks=8 starts 8 ranks, one for each device; the site's configuration must name a parallel launcher. Each roof is
a performance variable, with the median over the devices; a site sets `reference` as for any test. The targets say what
each device must reach."""

import csv
import os

import reframe as rfm
import reframe.utility.sanity as sn

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
POST = os.path.join(PROJECT, "postproc", "roofsweep-post")


@rfm.simple_test
class Roofs(rfm.RunOnlyRegressionTest):
    descr = "what each device does at its best"
    valid_systems = ["*"]  # noqa: RUF012
    valid_prog_environs = ["*"]  # noqa: RUF012
    executable = "roofsweep"
    manifest = variable(str, value=os.path.join(PROJECT, "sweeps", "roofs.ini"))  # noqa: F821 (ReFrame's own words)
    targets = variable(str, value=os.path.join(PROJECT, "sweeps", "targets.ini"))  # noqa: F821
    python = variable(str, value="python3")  # noqa: F821

    @run_before("run")  # noqa: F821
    def set_commands(self):
        self.executable_opts = ["--quiet", "--output", "roofs.nc", self.manifest]
        roofs = f"{self.python} {POST} export roofs.nc --table roofs --output roofs.csv"
        check = f"{self.python} {POST} check roofs.nc --targets {self.targets} --quiet >verdicts.txt"
        self.postrun_cmds = [roofs, f"{check} || true"]

    @sanity_function  # noqa: F821
    def every_device_passes(self):
        """The message names the first device that fails."""
        with open(os.path.join(self.stagedir, "verdicts.txt"), encoding="utf-8") as stream:
            lines = stream.read().splitlines()
        failed = [line for line in lines if not line.startswith("PASS ")]
        why = failed[0] if failed else "no device"
        return sn.assert_true(lines and not failed, why.replace("{", "{{").replace("}", "}}"))

    @run_before("performance")  # noqa: F821
    def set_variables(self):
        with open(os.path.join(self.stagedir, "roofs.csv"), encoding="utf-8") as stream:
            lines = [line for line in csv.DictReader(stream) if line["usable"] == "True"]
        kinds = {}
        for line in lines:
            kinds.setdefault((line["name"], line["condition"], line["unit"]), []).append(float(line["value"]))
        self.perf_variables = {
            f"{name}, {condition}": sn.make_performance_function(sn.defer(sorted(values)[len(values) // 2]), unit)
            for (name, condition, unit), values in kinds.items()
        }
