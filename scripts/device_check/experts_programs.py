"""Mixtures of MXFP4 experts of true size, as moe programs whose weights are one file of random numbers: what prepare_experts.py
compiles and check_experts.py checks and times. SHAPES: name -> (hidden, inner, experts, choices, activation)."""

SHAPES = {
    "gpt-oss-120b": (2880, 2880, 128, 4, "<swiglu, alpha = 1.702, beta = 1.0, limit = 7.0, interleaved = true>"),
    "kimi-k3-rank": (3584, 3072, 112, 2, "<situ, alpha = 25.0, beta = 4.0>"),
}


def parts(name):
    """(weight, shape, bytes) in the order of the file."""
    hidden, inner, experts, _, _ = SHAPES[name]
    result = []
    for weight, rows, columns in (("up", 2 * inner, hidden), ("down", hidden, inner)):
        result += [(f"{weight}_codes", (experts, rows, columns // 2), experts * rows * columns // 2),
                   (f"{weight}_scales", (experts, rows, columns // 32), experts * rows * columns // 32),
                   (f"{weight}_bias", (experts, rows), experts * rows * 2)]
    return result


def text(name, folder):
    hidden, inner, experts, choices, activation = SHAPES[name]
    lines, offset, kinds = [], 0, {}
    for weight, shape, size in parts(name):
        kinds[weight] = f"tensor<{'x'.join(map(str, shape))}x{'bf16' if weight.endswith('bias') else 'i8'}>"
        lines.append(f'  %{weight} = moe.weight "{weight}" at <"{name}.bin", {offset}, {size}> : {kinds[weight]}')
        offset += size
    blocks = {"up": f"!moe.block_tensor<[{experts}, {2 * inner}, {hidden}], mxfp4>",
              "down": f"!moe.block_tensor<[{experts}, {hidden}, {inner}], mxfp4>"}
    for weight, kind in blocks.items():
        codes, scales = f"{weight}_codes", f"{weight}_scales"
        lines.append(f"  %{weight} = moe.assemble_blocks %{codes}, %{scales} : {kinds[codes]}, {kinds[scales]} -> {kind}")
    x, i, w = f"tensor<?x{hidden}xbf16>", f"tensor<?x{choices}xi32>", f"tensor<?x{choices}xf32>"
    logits = f"tensor<?x{experts}xf32>"
    lines += [f"  %w, %i = moe.route softmax(%logits) {{renormalize, top_k = {choices}}} : {logits} -> {w}, {i}",
              f"  %y = moe.experts %x to %i, %w gate_up(%up : {blocks['up']}) down(%down : {blocks['down']})"
              f" gate_up_bias(%up_bias : {kinds['up_bias']}) down_bias(%down_bias : {kinds['down_bias']}) {activation}"
              f" : {x}, {i}, {w} -> {x}"]

    def named(kind, label):
        return f'{kind} {{moe.name = "{label}"}}'

    def argument(label, kind):
        return f'%{label}: {kind} {{moe.name = "{label}", moe.dims = ["tokens"]}}'
    head = (f"func.func @layer({argument('logits', logits)}, {argument('x', x)}) -> "
            f"({named(x, 'y')}, {named(w, 'w')}, {named(i, 'i')}) attributes {{moe.entry}} {{")
    return "\n".join([f'module attributes {{moe.weight_root = "{folder}"}} {{', head, *lines,
                      f"  return %y, %w, %i : {x}, {w}, {i}", "}", "}"]) + "\n"
