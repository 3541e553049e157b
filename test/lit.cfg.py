"""How lit runs the tests below this folder. Paths come from lit.site.cfg.py, which CMake writes."""

import os

import lit.formats
import lit.util

config.name = "moec"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["models", "Unit", "Runtime", "Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.moec_build, "test")

path = os.pathsep.join([os.path.join(config.moec_build, "bin"), config.llvm_tools, config.environment["PATH"]])
config.environment["PATH"] = path
for name in ("HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# `lit --param verify_roundtrip=1` runs every moec-opt through a print and parse of its input first.
roundtrip = lit_config.params.get("verify_roundtrip", "0") not in ("0", "")
config.substitutions += [
    ("%moec-opt", "moec-opt --verify-roundtrip" if roundtrip else "moec-opt"),
    ("%python", config.python),
    ("%models", os.path.join(config.test_source_root, "models")),
    ("%build", config.moec_build),
    ("%scripts", os.path.join(config.source_root, "scripts")),
]


def cpu_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("flags"):
                return set(line.split(":", 1)[1].split())
    return set()


flags = cpu_flags()
for feature, flag in (("avx2", "avx2"), ("avx512", "avx512bw"), ("amx", "amx_bf16")):
    if flag in flags:
        config.available_features.add(feature)
if lit.util.which("ptxas", path):
    config.available_features.add("ptxas")
