#include "tools/moec/verify/Outcome.h"

#include "llvm/ADT/STLExtras.h"

#include <cstdarg>
#include <cstdio>

namespace moec::verify {

static bool allAgree(const std::vector<Comparison> &comparisons) {
  return llvm::all_of(comparisons, [](const Comparison &each) { return each.agrees(); });
}

// The one that is furthest beyond what is allowed, or nearest to it.
static const Comparison *findWorst(const SegmentOutcome &segment) {
  const Comparison *worst = nullptr;
  auto weight = [](const Comparison &each) {
    double ratio = each.wantsIntegers || each.tolerance == 0 ? 0 : each.measured() / each.tolerance;
    return each.agrees() ? std::min(ratio, 1.0) : std::max(ratio, 2.0);
  };
  for (const auto *list : {&segment.withInterpreter, &segment.withFile})
    for (const Comparison &each : *list)
      if (!worst || weight(each) > weight(*worst))
        worst = &each;
  return worst;
}

bool SegmentOutcome::agrees() const { return allAgree(withInterpreter) && allAgree(withFile); }

const SegmentOutcome *Outcome::firstDifferent() const {
  for (const SegmentOutcome &segment : segments)
    if (!segment.agrees())
      return &segment;
  return nullptr;
}

bool Outcome::agrees() const { return !firstDifferent() && logits.agrees(); }

static std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));
static std::string format(const char *text, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(buffer, sizeof buffer, text, arguments);
  va_end(arguments);
  return buffer;
}

static std::string describe(const Comparison &each) {
  std::string text = each.op + " (" + each.name + "), " + each.shape + ": ";
  if (!each.wrongShape.empty())
    return text + each.wrongShape;
  if (each.wantsIntegers)
    return text + std::to_string(each.different) + " elements differ";
  text += format("relative RMS %.3g, allowed %.3g, largest difference %.3g", each.relativeRMS(),
                 each.tolerance, each.largest);
  if (each.share < 1)
    text += format("; %.0f%% of the rows within %.3g", 100 * each.share, each.measured());
  if (each.different)
    text += "; " + std::to_string(each.different) +
            " elements are infinite or no number on one side only";
  return text;
}

nlohmann::ordered_json Outcome::toJson() const {
  auto list = [](const std::vector<Comparison> &comparisons) {
    nlohmann::ordered_json result = nlohmann::ordered_json::array();
    for (const Comparison &each : comparisons)
      result.push_back(each.toJson());
    return result;
  };
  nlohmann::ordered_json result = {{"agrees", agrees()},
                                   {"bundle", bundle},
                                   {"model", model},
                                   {"variant", variant},
                                   {"reference", reference},
                                   {"level", level},
                                   {"seed", seed},
                                   {"sequences", sequences},
                                   {"tokens", tokens},
                                   {"steps", steps},
                                   {"tolerances",
                                    {{"f32", tolerances.f32},
                                     {"logits", tolerances.logits},
                                     {"bf16", tolerances.bf16},
                                     {"f16", tolerances.f16}}}};
  result["first_difference"] = nullptr;
  if (const SegmentOutcome *first = firstDifferent()) {
    result["first_difference"] = {
        {"segment", first->name},
        {"layer", first->layer ? nlohmann::ordered_json(*first->layer) : nullptr},
        {"op", first->firstOp ? first->firstOp->toJson() : nullptr},
        {"note", first->note}};
  } else if (!logits.agrees()) {
    result["first_difference"] = {
        {"segment", "logits"}, {"layer", nullptr}, {"op", nullptr}, {"note", logitsNote}};
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const SegmentOutcome &segment : segments) {
    nlohmann::ordered_json each = {
        {"name", segment.name},
        {"layer", segment.layer ? nlohmann::ordered_json(*segment.layer) : nullptr},
        {"agrees", segment.agrees()},
        {"with_interpreter", list(segment.withInterpreter)}};
    if (!segment.withFile.empty()) {
      each["with_file"] = list(segment.withFile);
      each["interpreter_with_file"] = list(segment.interpreterWithFile);
    }
    if (segment.firstOp)
      each["first_op"] = segment.firstOp->toJson();
    if (!segment.note.empty())
      each["note"] = segment.note;
    all.push_back(std::move(each));
  }
  result["segments"] = std::move(all);
  result["logits"] = logits.toJson();
  if (!logitsNote.empty())
    result["logits"]["note"] = logitsNote;
  return result;
}

std::string Outcome::toTable() const {
  std::string text = model + ", " + variant + ", against " + reference + "\nlevel " + level + ": " +
                     std::to_string(sequences) + (sequences == 1 ? " sequence, " : " sequences, ") +
                     std::to_string(tokens) + " tokens, " + std::to_string(steps) +
                     (steps == 1 ? " step\n\n" : " steps\n\n");
  text += format("%-16s %12s %12s %12s  %s\n", "", "error", "allowed", "largest", "");
  auto line = [&](const std::string &name, const Comparison &each, bool agrees) {
    text += format("%-16s %12.3g %12.3g %12.3g  %s", name.c_str(), each.measured(), each.tolerance,
                   each.largest, agrees ? "agrees" : "DIFFERS");
    if (each.otherChoices)
      text +=
          "; " + std::to_string(each.otherChoices) + " tokens have other experts, within rounding";
    text += "\n";
  };
  for (const SegmentOutcome &segment : segments)
    if (const Comparison *worst = findWorst(segment))
      line(segment.name, *worst, segment.agrees());
  line("logits", logits, logits.agrees());
  text += "\nError: relative root mean square of what is nearest to its limit. Layers are computed "
          "from the reference's inputs, "
          "logits from end\nto end.\n";
  if (const SegmentOutcome *first = firstDifferent()) {
    text += "\nThe first difference is in " + first->name + ".\n";
    for (const auto &[list, what] :
         {std::pair(&first->withInterpreter, "compiled code and " + second),
          {&first->withFile, std::string("compiled code and the file")}})
      for (const Comparison &each : *list)
        if (!each.agrees())
          text += "  " + what + ": " + describe(each) + "\n";
    if (first->firstOp)
      text += "The first op that differs: " + describe(*first->firstOp) + "\n";
    if (!first->note.empty())
      text += first->note + "\n";
  } else if (!logits.agrees()) {
    text +=
        "\nEach layer agrees, the logits do not: " + describe(logits) + "\n" + logitsNote + "\n";
  }
  return text + (agrees() ? "\nAll agrees.\n" : "\nCompiled code and reference differ.\n");
}

} // namespace moec::verify
