#include "runtime/session/PatternSyntax.h"

#include "runtime/session/Utf8.h"

#include <algorithm>
#include <array>
#include <vector>

namespace moert {

namespace {

constexpr std::array<std::string_view, 38> categories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cs", "Co", "Cn", "Any"};

struct LongName {
  std::string_view name, pcre2;
};
constexpr LongName longNames[] = {{"Letter", "L"},
                                  {"Mark", "M"},
                                  {"Number", "N"},
                                  {"Punctuation", "P"},
                                  {"Symbol", "S"},
                                  {"Separator", "Z"},
                                  {"LC", "L&"},
                                  {"Alphabetic", "Alphabetic"},
                                  {"Alpha", "Alphabetic"},
                                  {"White_Space", "White_Space"},
                                  {"Space", "White_Space"},
                                  {"Digit", "Nd"},
                                  {"Lowercase", "Lowercase"},
                                  {"Uppercase", "Uppercase"},
                                  {"Emoji", "Emoji"},
                                  {"Ideographic", "Ideographic"}};

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

// One pass from left to right. The first problem stops it.
class Translator {
public:
  Translator(std::string_view pattern, PatternSyntax syntax)
      : rest(pattern), whole(pattern), syntax(syntax) {}

  Result<std::string> run() {
    while (!rest.empty() && problem.empty())
      element();
    if (problem.empty())
      return std::move(out);
    return Status(ErrorCode::Unsupported, "the pattern is not supported at byte " +
                                              std::to_string(whole.size() - rest.size()) + ": " +
                                              problem);
  }

private:
  bool isRuby() const { return syntax == PatternSyntax::Oniguruma; }
  bool take(std::string_view text) {
    if (!rest.starts_with(text))
      return false;
    rest.remove_prefix(text.size());
    return true;
  }
  char next() {
    if (rest.empty()) {
      fail("it ends too early");
      return 0;
    }
    char c = rest.front();
    rest.remove_prefix(1);
    return c;
  }
  void fail(const std::string &message) {
    if (problem.empty())
      problem = message;
  }

  // What \w stands for, as the inside of a class.
  std::string wordItems() const {
    return isRuby() ? R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})"
                    : R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";
  }

  void element() {
    if (rest.front() == '{' || rest.front() == '*' || rest.front() == '+' || rest.front() == '?')
      return quantifier();
    if (rest.front() == ')') {
      if (groups.empty())
        return fail("a ')' without '('");
      atom = groups.back();
      groups.pop_back();
      out += next();
      return;
    }
    if (take("|")) {
      out += '|';
      atom = out.size();
      return;
    }
    atom = out.size();
    if (rest.front() == '(')
      return group();
    if (take("["))
      out += set(0);
    else if (take("\\"))
      out += escape(/*inSet=*/false);
    else if (take("^"))
      out += isRuby() ? "(?m:^)" : "\\A";
    else if (take("$"))
      out += isRuby() ? "(?m:$)" : "\\z";
    else
      out += character();
  }

  // A literal character, all its bytes.
  std::string character() {
    std::size_t bytes = std::min<std::size_t>(nextUtf8(rest).bytes, rest.size());
    std::string text(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
    return text;
  }

  void quantifier() {
    if (rest.front() != '{') {
      out += next(); // '+' after '*' is possessive and '?' lazy everywhere
      return;
    }
    std::size_t end = rest.find('}');
    std::string_view inside = rest.substr(1, end == std::string_view::npos ? 0 : end - 1);
    bool isInterval =
        !inside.empty() && inside != "," && std::count(inside.begin(), inside.end(), ',') <= 1 &&
        std::all_of(inside.begin(), inside.end(), [](char c) { return isDigit(c) || c == ','; });
    if (!isInterval) {
      atom = out.size();
      rest.remove_prefix(1);
      out += "\\{";
      return;
    }
    bool isExact = inside.find(',') == std::string_view::npos;
    out += inside.front() == ',' ? "{0" : "{";
    out.append(inside).append("}");
    rest.remove_prefix(end + 1);
    // In Ruby "x{1,3}+" repeats the interval, and so does "x{3}?".
    if (isRuby() && !rest.empty() && (rest.front() == '+' || (isExact && rest.front() == '?'))) {
      out.insert(atom, "(?:");
      out += ")";
    }
  }

  void group() {
    groups.push_back(out.size());
    if (rest.starts_with("(*"))
      return fail("'(*'");
    for (const char *opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"})
      if (take(opening)) {
        out += opening;
        return;
      }
    if (!take("(?")) {
      out += next();
      return;
    }
    out += "(?";
    while (problem.empty()) {
      char c = next();
      if (c == ':' || c == ')' || c == 'i' || c == '-' || (c == 's' && !isRuby()))
        out += c;
      else if (c == 'm' && isRuby())
        out += 's'; // '.' matches newlines
      else if (problem.empty())
        fail("the group '(?" + std::string(1, c) + "'");
      if (c == ')')
        groups.pop_back();
      if (c == ':' || c == ')')
        return;
    }
  }

  // After the backslash.
  std::string escape(bool inSet) {
    char c = next();
    auto items = [&](const std::string &text) { return inSet ? text : "[" + text + "]"; };
    auto others = [&](const std::string &text) {
      if (inSet)
        fail("'\\" + std::string(1, c) + "' in a class");
      return "[^" + text + "]";
    };
    std::string word = "[" + wordItems() + "]";
    switch (c) {
    case 'p':
    case 'P':
      return property(c);
    case 's':
      return "\\p{White_Space}";
    case 'S':
      return "\\P{White_Space}";
    case 'w':
      return items(wordItems());
    case 'W':
      return others(wordItems());
    case 'h':
      return items("0-9a-fA-F");
    case 'H':
      return others("0-9a-fA-F");
    case 'v':
      return "\\x0b";
    case 'b':
      return inSet ? "\\x08"
                   : "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
    case 'B':
      if (!inSet)
        return "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
      break;
    case 'u':
      return codePoint(4);
    case 'x':
      return codePoint(2);
    case 'A':
    case 'z':
    case 'Z':
      if (!inSet)
        return std::string("\\") + c;
      break;
    case 'd':
    case 'D':
    case 'n':
    case 'r':
    case 't':
    case 'f':
    case 'a':
    case 'e':
      return std::string("\\") + c;
    default:
      if (!isLetter(c) && !isDigit(c) && static_cast<unsigned char>(c) < 0x80)
        return std::string("\\") + c;
    }
    fail("the escape '\\" + std::string(1, c) + "'");
    return {};
  }

  // \x{1F600}, \x41 and \u0041.
  std::string codePoint(std::size_t digits) {
    std::string_view text;
    if (take("{")) {
      std::size_t end = std::min(rest.find('}'), rest.size());
      text = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    } else {
      text = rest.substr(0, digits);
      rest.remove_prefix(text.size());
    }
    bool isHex = !text.empty() && text.size() <= 8 &&
                 text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (!isHex)
      fail("a code point that is no hexadecimal number");
    return "\\x{" + std::string(text) + "}";
  }

  std::string property(char kind) {
    std::string_view name;
    if (take("{")) {
      std::size_t end = std::min(rest.find('}'), rest.size());
      name = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    } else {
      name = rest.substr(0, 1);
      rest.remove_prefix(name.size());
    }
    if (name.starts_with('^')) {
      kind = kind == 'p' ? 'P' : 'p';
      name.remove_prefix(1);
    }
    for (std::string_view prefix : {"Script=", "sc=", "General_Category=", "gc="})
      if (name.starts_with(prefix))
        name.remove_prefix(prefix.size());
    std::string found;
    if (std::find(categories.begin(), categories.end(), name) != categories.end())
      found = name;
    for (const LongName &each : longNames)
      if (name == each.name)
        found = each.pcre2;
    if (found.empty()) { // a script, or PCRE2 says that it knows none of this name
      if (name.empty() ||
          !std::all_of(name.begin(), name.end(), [](char c) { return isLetter(c) || c == '_'; }))
        fail("the property " + inQuotes(name));
      found = "sc:" + std::string(name);
    }
    return std::string("\\") + kind + "{" + found + "}";
  }

  // One side of "&&": simple items, which fit into one class of PCRE2, and classes in the class.
  struct Operand {
    std::string items;
    std::vector<std::string> sets;
    std::string text() const {
      if (sets.empty())
        return "[" + items + "]";
      if (items.empty() && sets.size() == 1)
        return sets.front();
      std::string result = "(?:" + (items.empty() ? "" : "[" + items + "]|");
      for (std::size_t i = 0; i < sets.size(); ++i)
        result += (i ? "|" : "") + sets[i];
      return result + ")";
    }
  };

  // After the '['. A fragment that matches exactly one character.
  std::string set(unsigned depth) {
    if (depth > 8) {
      fail("classes in classes, too deep");
      return {};
    }
    bool isNegated = take("^");
    std::vector<Operand> operands(1);
    bool isFirst = true;
    while (problem.empty()) {
      Operand &last = operands.back();
      if (rest.empty())
        fail("a class without end");
      else if (isFirst && take("]"))
        last.items += "\\]";
      else if (take("]"))
        break;
      else if (rest.starts_with("[:"))
        fail("a class of POSIX");
      else if (take("["))
        last.sets.push_back(set(depth + 1));
      else if (take("&&"))
        operands.emplace_back();
      else if (!isRuby() && (rest.starts_with("--") || rest.starts_with("~~")))
        fail("an operator of classes other than '&&'");
      else if (take("\\"))
        last.items += escape(/*inSet=*/true);
      else
        last.items += character();
      isFirst = false;
    }
    for (const Operand &operand : operands)
      if (problem.empty() && operand.items.empty() && operand.sets.empty())
        fail("an empty class");
    if (operands.size() == 1 && operands.front().sets.empty())
      return (isNegated ? "[^" : "[") + operands.front().items + "]";
    std::string all = operands.front().text();
    for (std::size_t i = 1; i < operands.size(); ++i)
      all = "(?=" + operands[i].text() + ")" + all;
    return isNegated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
  }

  std::string_view rest, whole;
  PatternSyntax syntax;
  std::string out;
  std::string problem;
  std::size_t atom = 0; // where in `out` the element that a quantifier repeats begins
  std::vector<std::size_t> groups;
};

} // namespace

Result<std::string> toPcre2(std::string_view pattern, PatternSyntax syntax) {
  return Translator(pattern, syntax).run();
}

} // namespace moert
