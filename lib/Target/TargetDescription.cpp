//===- TargetDescription.cpp - names of micro-architectures and their features ----------------===//

#include "moec/Target/TargetDescription.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;
using namespace mlir::moec;

static constexpr StringLiteral targetAttribute = "moec.target";
static constexpr StringLiteral batchInvariantAttribute = "moec.batch_invariant";

using FeatureSet = llvm::StringSet<>;

/// Whether generated code may depend on a feature. Others (for keys, random numbers, operating
/// systems) are left out of descriptions: a machine need not have them.
static bool matters(StringRef feature) {
  static const llvm::StringSet<> names = {
      "adx",  "bmi",   "bmi2", "cmov",  "crc32",  "cx16", "cx8",   "f16c", "fma",  "fxsr",
      "gfni", "lzcnt", "mmx",  "movbe", "popcnt", "sahf", "ssse3", "x87",  "xsave"};
  return names.contains(feature) || feature.starts_with("avx") || feature.starts_with("amx-") ||
         feature.starts_with("sse");
}

static llvm::StringMap<bool> getFeatureMap(StringRef cpu) {
  llvm::StringMap<bool> map;
  // Every 64-bit machine has what x86-64 has, which not every list repeats.
  for (StringRef name : {StringRef("x86-64"), cpu}) {
    SmallVector<StringRef> features;
    llvm::X86::getFeaturesForCPU(name, features);
    for (StringRef feature : features) {
      map[feature] = true;
      llvm::X86::updateImpliedFeatures(feature, true, map);
    }
  }
  for (StringRef feature : llvm::to_vector(map.keys()))
    if (!matters(feature))
      map.erase(feature);
  return map;
}

/// What the features of all micro-architectures together are: the names that can be switched.
static FeatureSet getKnownFeatures() {
  FeatureSet known;
  SmallVector<StringRef> cpus;
  llvm::X86::fillValidCPUArchList(cpus, /*Only64Bit=*/true);
  for (StringRef cpu : cpus)
    for (const auto &entry : getFeatureMap(cpu))
      known.insert(entry.getKey());
  return known;
}

/// Switches a feature together with what it implies (on) or what needs it (off).
static void switchFeature(llvm::StringMap<bool> &map, StringRef feature, bool on) {
  map[feature] = on;
  llvm::X86::updateImpliedFeatures(feature, on, map);
  for (StringRef name : llvm::to_vector(map.keys()))
    if (!matters(name))
      map.erase(name);
}

static std::vector<std::string> getSortedFeatures(const llvm::StringMap<bool> &map) {
  std::vector<std::string> features;
  for (const auto &entry : map)
    if (entry.getValue())
      features.push_back(entry.getKey().str());
  llvm::sort(features);
  return features;
}

static std::string nameCPU(StringRef cpu, ArrayRef<std::string> switches) {
  std::string name = ("cpu:" + cpu).str();
  for (StringRef feature : switches)
    name += ("," + feature).str();
  return name;
}

/// Takes from a micro-architecture what `host` says that it lacks. Features that `host` does not
/// report at all (such as "64bit") are taken to be there.
static TargetDescription fitToHost(StringRef cpu, const llvm::StringMap<bool> &host) {
  TargetDescription target;
  target.cpu = cpu.str();
  llvm::StringMap<bool> map = getFeatureMap(cpu);
  auto isMissing = [&](StringRef feature) {
    auto it = host.find(feature);
    return it != host.end() && !it->second;
  };

  // Only the roots of what is missing become part of the name: "-avx512f" takes all of AVX-512 with
  // it.
  SmallVector<std::pair<size_t, std::string>> missing;
  for (const std::string &feature : getSortedFeatures(map)) {
    if (!isMissing(feature))
      continue;
    llvm::StringMap<bool> without = map;
    switchFeature(without, feature, false);
    missing.push_back({getSortedFeatures(without).size(), feature});
  }
  llvm::sort(missing);
  SmallVector<std::string> switches;
  for (auto &[count, feature] : missing) {
    if (!map.lookup(feature))
      continue;
    switchFeature(map, feature, false);
    switches.push_back("-" + feature);
  }
  llvm::sort(switches);
  target.features = getSortedFeatures(map);
  target.name = nameCPU(target.cpu, switches);
  return target;
}

/// This machine: the micro-architecture that its model number says, less what the operating system
/// or a hypervisor hides; or, where the machine has more than that (new or renumbered models), the
/// oldest micro-architecture that it has all features of and that has the most of them. Features
/// beyond those of the micro-architecture are not used, so that the name says everything.
static TargetDescription describeHost() {
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  SmallVector<StringRef> valid;
  llvm::X86::fillValidCPUArchList(valid, /*Only64Bit=*/true);
  StringRef named = llvm::sys::getHostCPUName();
  TargetDescription best = fitToHost(llvm::is_contained(valid, named) ? named : "x86-64", host);
  for (StringRef cpu : valid) {
    if (getFeatureMap(cpu).size() <= best.features.size())
      continue;
    TargetDescription candidate = fitToHost(cpu, host);
    if (candidate.name == nameCPU(cpu, {}))
      best = std::move(candidate);
  }
  return best;
}

bool TargetDescription::has(StringRef feature) const {
  return llvm::binary_search(features, feature, [](StringRef a, StringRef b) { return a < b; });
}

unsigned TargetDescription::getVectorBytes() const {
  if (has("avx512f") && has("avx512bw") && has("avx512vl"))
    return 64;
  return has("avx2") ? 32 : 16;
}

/// GPUs that code can be made for, and ten times their compute capability.
static constexpr std::pair<StringLiteral, unsigned> gpus[] = {
    {"sm_80", 80}, {"sm_86", 86}, {"sm_89", 89}, {"sm_90", 90}, {"sm_90a", 90}, {"sm_100", 100}};

FailureOr<TargetDescription> TargetDescription::parse(StringRef name, std::string &error) {
  auto fail = [&](const Twine &message) -> LogicalResult {
    error = ("target '" + name + "': " + message).str();
    return failure();
  };
  if (name == "cpu")
    return describeHost();

  StringRef rest = name;
  if (rest.consume_front("cuda:")) {
    TargetDescription target;
    for (auto &[gpu, capability] : gpus)
      if (rest == gpu)
        target.computeCapability = capability;
    if (!target.isCUDA())
      return fail("unknown GPU '" + rest + "'; known are " +
                  llvm::join(llvm::make_first_range(gpus), ", "));
    target.name = name.str();
    target.cpu = rest.str();
    return target;
  }
  if (!rest.consume_front("cpu:"))
    return fail("expected 'cpu' (this machine), 'cpu:' and a micro-architecture, such as "
                "'cpu:x86-64-v3', or 'cuda:' and a GPU, such as 'cuda:sm_90a'");
  SmallVector<StringRef> parts;
  rest.split(parts, ',');

  TargetDescription target;
  target.cpu = parts.front().str();
  SmallVector<StringRef> valid;
  llvm::X86::fillValidCPUArchList(valid, /*Only64Bit=*/true);
  if (!llvm::is_contained(valid, target.cpu)) {
    llvm::sort(valid);
    return fail("unknown micro-architecture '" + target.cpu + "'; known are " +
                llvm::join(valid, ", "));
  }

  FeatureSet known = getKnownFeatures();
  llvm::StringMap<bool> map = getFeatureMap(target.cpu);
  SmallVector<std::string> switches;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    StringRef feature = part;
    bool on = feature.consume_front("+");
    if (!on && !feature.consume_front("-"))
      return fail("expected '+' or '-' before the feature '" + part + "'");
    if (!known.contains(feature)) {
      SmallVector<StringRef> names(known.keys());
      llvm::sort(names);
      return fail("unknown feature '" + feature + "'; known are " + llvm::join(names, ", "));
    }
    // A switch that changes nothing is left out of the name: equal targets have equal names.
    if (map.lookup(feature) == on)
      continue;
    switchFeature(map, feature, on);
    switches.push_back(part.str());
  }
  llvm::sort(switches);
  target.features = getSortedFeatures(map);
  target.name = nameCPU(target.cpu, switches);
  return target;
}

FailureOr<TargetDescription> TargetDescription::get(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(targetAttribute);
  if (!name)
    return module.emitError() << "expected the attribute '" << targetAttribute
                              << "' with the name of a target, such as \"cpu:x86-64-v3\"";
  std::string error;
  FailureOr<TargetDescription> target = parse(name, error);
  if (failed(target))
    return module.emitError() << error;
  target->batchInvariant = module->hasAttr(batchInvariantAttribute);
  return target;
}

bool TargetDescription::isSet(ModuleOp module) { return module->hasAttr(targetAttribute); }

void TargetDescription::set(ModuleOp module) const {
  module->setAttr(targetAttribute, StringAttr::get(module.getContext(), name));
  if (batchInvariant)
    module->setAttr(batchInvariantAttribute, UnitAttr::get(module.getContext()));
  else
    module->removeAttr(batchInvariantAttribute);
}
