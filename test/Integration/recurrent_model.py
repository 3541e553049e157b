"""recurrent_model.py FOLDER TYPE: a language model of random weights whose layers are linear attention of both kinds and attention.

Writes FOLDER/model.mlir and its weights. Activations are of TYPE, f32 or bf16. The layers are put together as in Kimi-Linear (decay for each
channel, bounded, a_log padded behind the heads, sigmoid gate), Qwen3-Next (decay for each head, groups of heads, silu gate) and with a
paged cache; heads, dimensions and hidden sizes are all different."""

import sys

import numpy as np

from differential_programs import Weights

folder, dtype = sys.argv[1], sys.argv[2]
VOCABULARY, HIDDEN, TAPS = 48, 40, 4
rng = np.random.default_rng(11)
weights, lines, states = Weights("weights.safetensors"), [], []
I32, STEP = "tensor<?xi32>", "(%positions, %sequence_offsets, %state_slots)"
names = iter(range(10**6))


def tensor(*shape, element=dtype):
    return "tensor<?x" + "".join(f"{n}x" for n in shape) + element + ">"


def value(text):
    name = f"%v{next(names)}"
    lines.append(f"    {name} = {text}")
    return name


def weight(x, element="f32"):
    text, kind = weights.add(element, x)
    return value(text), kind


def matrix(rows, columns):
    return weight(rng.normal(size=(rows, columns)) / np.sqrt(columns), "bf16")


def linear(x, columns, rows):
    w, kind = matrix(rows, columns)
    return value(f"moe.linear {x}, {w} : {tensor(columns)}, {kind} -> {tensor(rows)}")


def norm(x):
    w, kind = weight(1 + 0.1 * rng.normal(size=HIDDEN))
    return value(f"moe.rms_norm {x} weight({w} : {kind}) {{epsilon = 1.0e-5}} : {tensor(HIDDEN)}")


def heads(x, count, dim):
    return value(f"tensor.expand_shape {x} [[0], [1, 2]] output_shape [%t, {count}, {dim}] : {tensor(count * dim)} into {tensor(count, dim)}")


def part(x, width, first, count, dim):
    """Some columns as heads."""
    size = count * dim
    piece = value(f"tensor.extract_slice {x}[0, {first}] [%t, {size}] [1, 1] : {tensor(width)} to {tensor(size)}")
    return heads(piece, count, dim)


def state(shape, element):
    name, kind = f"%state{len(states)}", f"!moe.state<{list(shape)}, {element}>"
    states.append((name, kind))
    return name, kind


def sigmoid_f32(x, width):
    wide, kind = x, tensor(width, element="f32")
    if dtype != "f32":
        wide = value(f"arith.extf {x} : {tensor(width)} to {kind}")
    e = value(f"math.exp {value(f'arith.negf {wide} : {kind}')} : {kind}")
    one = value(f"tensor.splat %one[%t] : {kind}")
    return value(f"arith.divf {one}, {value(f'arith.addf {one}, {e} : {kind}')} : {kind}")


def residual(x, y, width):
    return value(f"arith.addf {x}, {linear(y, width, HIDDEN)} : {tensor(HIDDEN)}")


def linear_attention(x, key_heads, value_heads, dim, value_dim, per_channel, gate):
    h, width = norm(x), 2 * key_heads * dim + value_heads * value_dim
    w, kind = weight(rng.normal(size=(width, TAPS)) / 2)
    window, window_kind = state((TAPS - 1, width), dtype)
    y = value(f"moe.causal_conv {linear(h, HIDDEN, width)} weight({w} : {kind}) over {window} at {STEP} {{silu}} : {tensor(width)}, "
              f"{window_kind}, {I32}, {I32}, {I32}")
    q, k = part(y, width, 0, key_heads, dim), part(y, width, key_heads * dim, key_heads, dim)
    v = part(y, width, 2 * key_heads * dim, value_heads, value_dim)
    row = (value_heads, dim) if per_channel else (value_heads,)
    f = linear(linear(h, HIDDEN, 8), 8, int(np.prod(row)))
    if per_channel:
        f = heads(f, *row)
    a, a_kind = weight(np.concatenate([rng.uniform(-1, 1, size=value_heads), np.zeros(13)]))
    b, b_kind = weight(rng.normal(size=row))
    bound = " {lower_bound = -5.0}" if per_channel else ""
    g = value(f"moe.decay_gate {f} a_log({a} : {a_kind}) bias({b} : {b_kind}){bound} : {tensor(*row)} -> {tensor(*row, element='f32')}")
    beta = sigmoid_f32(linear(h, HIDDEN, value_heads), value_heads)
    memory, memory_kind = state((value_heads, dim, value_dim), "f32")
    out = tensor(value_heads, value_dim, element="f32")
    o = value(f"moe.delta_rule {q}, {k}, {v} decay({g} : {tensor(*row, element='f32')}) beta({beta} : {tensor(value_heads, element='f32')}) "
              f"over {memory} at {STEP} {{scale = {dim**-0.5}, norm_epsilon = 1.0e-6}} : {tensor(key_heads, dim)}, {tensor(key_heads, dim)}, "
              f"{tensor(value_heads, value_dim)}, {memory_kind}, {I32}, {I32}, {I32} -> {out}")
    z = heads(linear(h, HIDDEN, value_heads * value_dim), value_heads, value_dim)
    n, n_kind = weight(1 + 0.1 * rng.normal(size=value_dim))
    narrow = tensor(value_heads, value_dim)
    o = value(f"moe.gated_rms_norm {o} by {gate}({z} : {narrow}) weight({n} : {n_kind}) {{epsilon = 1.0e-5}} : {out} -> {narrow}")
    o = value(f"tensor.collapse_shape {o} [[0], [1, 2]] : {narrow} into {tensor(value_heads * value_dim)}")
    return residual(x, o, value_heads * value_dim)


def attention(x, count, kv_heads, dim):
    h = norm(x)
    q, k, v = (heads(linear(h, HIDDEN, n * dim), n, dim) for n in (count, kv_heads, kv_heads))
    kind = f"!moe.cache<kv_heads = {kv_heads}, key_dim = {dim}, value_dim = {dim}, block = 16, {dtype}>"
    states.append(("%cache", kind))
    where, table = "(%positions, %token_sequences, %block_table)", "tensor<?x?xi32>"
    lines.append(f"    moe.kv_append {k}, {v} into %cache at {where} : {tensor(kv_heads, dim)}, {tensor(kv_heads, dim)}, {kind}, {I32}, {I32}, {table}")
    o = value(f"moe.attention {q} over %cache at {where} {{scale = {dim**-0.5}}} : {tensor(count, dim)}, {kind}, {I32}, {I32}, {table} -> {tensor(count, dim)}")
    o = value(f"tensor.collapse_shape {o} [[0], [1, 2]] : {tensor(count, dim)} into {tensor(count * dim)}")
    return residual(x, o, count * dim)


lines += ["    %c0 = arith.constant 0 : index", "    %one = arith.constant 1.0 : f32", f"    %t = tensor.dim %tokens, %c0 : {I32}"]
table, table_kind = weight(rng.normal(size=(VOCABULARY, HIDDEN)), "bf16")
x = value(f"moe.embedding %tokens, {table} : {I32}, {table_kind} -> {tensor(HIDDEN)}")
x = linear_attention(x, 3, 3, 8, 8, True, "sigmoid")
x = linear_attention(x, 2, 4, 12, 20, False, "silu")
x = attention(x, 4, 2, 8)
x = linear_attention(x, 3, 3, 8, 8, True, "sigmoid")
x = value(f"moe.gather_rows {x}, %logit_rows : {tensor(HIDDEN)}, {I32} -> {tensor(HIDDEN)}")
head, head_kind = matrix(VOCABULARY, HIDDEN)
logits = tensor(VOCABULARY, element="f32")
x = value(f"moe.linear {norm(x)}, {head} : {tensor(HIDDEN)}, {head_kind} -> {logits}")

weights.write(folder)
sizes = dict(tokens='"tokens"', positions='"tokens"', token_sequences='"tokens"', sequence_offsets='"sequences + 1"', state_slots='"sequences"',
             logit_rows='"rows"')
arguments = [f'%{name}: {I32} {{moe.dims = [{size}], moe.name = "{name}"}}' for name, size in sizes.items()]
arguments.append('%block_table: tensor<?x?xi32> {moe.dims = ["sequences", "blocks"], moe.name = "block_table"}')
arguments += [f'{name}: {kind} {{moe.name = "{name[1:]}"}}' for name, kind in states]
model = "{vocabulary = 48 : i64, block_tokens = 16 : i64, maximum_tokens = 4096 : i64}"
with open(f"{folder}/model.mlir", "w", encoding="utf-8") as file:
    file.write(f'module attributes {{moe.language_model = {model}, moe.model = "recurrent", moe.weight_root = "{folder}"}} {{\n'
               f'  func.func @step({", ".join(arguments)}) -> ({logits} {{moe.name = "logits"}}) attributes {{moe.entry}} {{\n'
               + weights.place("\n".join(lines)) + f"\n    return {x} : {logits}\n  }}\n}}\n")
