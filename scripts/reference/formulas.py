"""The moe ops in numpy, written from their descriptions. Everything is float64 unless a description says where it is rounded.

Slow loops on purpose: nothing here shares code or tricks with the interpreter that it checks."""

import math

import numpy as np


def round_to(dtype, x):
    """The nearest numbers of 'f64', 'f32', 'bf16' or 'f16' as float64, halves to even, rounded once."""
    x = np.asarray(x, np.float64)
    if dtype == "f64":
        return x
    if dtype == "f32":
        return x.astype(np.float32).astype(np.float64)
    if dtype == "f16":
        return x.astype(np.float16).astype(np.float64)
    assert dtype == "bf16"
    _, exponent = np.frexp(x)
    step = np.ldexp(1.0, np.maximum(exponent, -125) - 8)  # 8 bits of fraction, subnormals from 2^-133 on
    with np.errstate(invalid="ignore"):
        rounded = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    return np.where(np.abs(rounded) > 3.3895313892515355e38, np.sign(rounded) * np.inf, rounded)


def interpolate_positions(grid, rows, heights, columns, widths):
    result = np.zeros((len(rows), grid.shape[2]))
    for t in range(len(rows)):
        # Coordinates are in single precision.
        y, x = (np.float32(i + np.float32(0.5)) * (np.float32(size) / np.float32(max(count, 1))) - np.float32(0.5)
                for i, count, size in ((np.float32(rows[t]), heights[t], grid.shape[0]), (np.float32(columns[t]), widths[t], grid.shape[1])))
        y, x = min(max(float(y), 0.0), grid.shape[0] - 1.0), min(max(float(x), 0.0), grid.shape[1] - 1.0)
        for row in range(grid.shape[0]):
            for column in range(grid.shape[1]):
                weight = max(0.0, 1 - abs(y - row)) * max(0.0, 1 - abs(x - column))
                result[t] += weight * grid[row, column]
    return result


def replace_rows(x, replacements, rows):
    result = x.copy()
    for t, row in enumerate(rows):
        if row >= 0:
            result[t] = replacements[min(row, len(replacements) - 1)]
    return result


def rms_norm(x, weight, epsilon, unit_offset=False):
    scale = 1.0 if weight is None else weight + (1.0 if unit_offset else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * scale


def mix_residuals(candidates, weight, epsilon):
    mixed = np.zeros_like(candidates[0])
    for t in range(len(mixed)):
        scores = np.array([(rms_norm(candidate[t], weight, epsilon)).sum() for candidate in candidates])
        for p, candidate in zip(softmax(scores), candidates):
            mixed[t] += p * candidate[t]
    return mixed


def layer_norm(x, weight, bias, epsilon):
    mean = x.mean(-1, keepdims=True)
    y = (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + epsilon)
    return y * (1.0 if weight is None else weight) + (0.0 if bias is None else bias)


def linear(x, weight, bias=None, residual=None):
    y = np.zeros((len(x), len(weight)))
    for t in range(len(x)):
        for n in range(len(weight)):
            y[t, n] = math.fsum(x[t] * weight[n]) if np.isfinite(x[t] * weight[n]).all() else (x[t] * weight[n]).sum()
    return y + (0.0 if bias is None else bias) + (0.0 if residual is None else residual)


E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def mxfp4(codes, scales):
    """codes [.., K], one a number; scales [.., K / 32], bytes."""
    shape = codes.shape
    values = np.array([(-1.0 if c & 8 else 1.0) * E2M1[c & 7] for c in codes.reshape(-1)]).reshape(shape)
    factors = np.array([math.nan if s == 255 else 2.0 ** (int(s) - 127) for s in scales.reshape(-1)]).reshape(scales.shape)
    return values * np.repeat(factors, 32, axis=-1)


def float8(codes, exponent_bits):
    """Numbers of 8 bits: E4M3 without infinities, or E5M2 with them."""
    mantissa_bits = 7 - exponent_bits
    bias, last = 2 ** (exponent_bits - 1) - 1, 2 ** exponent_bits - 1
    values = []
    for code in range(256):
        sign, exponent, mantissa = -1.0 if code & 128 else 1.0, (code >> mantissa_bits) & last, code & (2**mantissa_bits - 1)
        if exponent == last and exponent_bits == 5:
            values.append(math.nan if mantissa else sign * math.inf)
        elif code & 127 == 127 and exponent_bits == 4:
            values.append(math.nan)
        elif exponent == 0:
            values.append(sign * mantissa * 2.0 ** (1 - bias - mantissa_bits))
        else:
            values.append(sign * (1 + mantissa * 2.0**-mantissa_bits) * 2.0 ** (exponent - bias))
    return np.array(values)[codes]


def e8m0(scales):
    return np.array([2.0 ** (s - 127) for s in range(255)] + [math.nan])[scales]


def scaled(values, scales, block):
    """values [.., N, K] times the scale of their block, the product rounded to f32."""
    rows, columns = values.shape[-2:]
    factors = np.repeat(np.repeat(scales, block[0], axis=-2)[..., :rows, :], block[1], axis=-1)[..., :columns]
    return round_to("f32", values * factors)


def pack_codes(codes):
    """Two codes a byte, the even one in the low nibble."""
    return (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)


def rope(x, positions, frequencies, magnitude=1.0, offset=0, interleaved=False):
    """x [T, heads, dim]. The angle is a float32 product."""
    y = x.copy()
    n = len(frequencies)
    for t, position in enumerate(positions):
        for i in range(n):
            angle = float(np.float32(position) * np.float32(frequencies[i]))
            c, s = magnitude * math.cos(angle), magnitude * math.sin(angle)
            first, second = (offset + 2 * i, offset + 2 * i + 1) if interleaved else (offset + i, offset + i + n)
            a, b = x[t, :, first], x[t, :, second]
            y[t, :, first], y[t, :, second] = a * c - b * s, b * c + a * s
    return y


def softmax(x):
    if np.max(x) == -np.inf:
        return np.zeros_like(x)
    e = np.exp(x - np.max(x))
    return e / e.sum()


def route(logits, k, score, bias=None, groups=1, top_groups=1, renormalize=False, scale=1.0):
    """-> weights, indices. A logit that is NaN counts as -inf. Scores are compared in float32."""
    tokens, experts = logits.shape
    logits = np.where(np.isnan(logits), -np.inf, logits)
    weights, indices = np.zeros((tokens, k)), np.zeros((tokens, k), np.int32)
    for t in range(tokens):
        if score == "softmax":
            s = softmax(logits[t])
        elif score == "sigmoid":
            s = 1 / (1 + np.exp(-logits[t]))
        else:
            s = np.sqrt(np.log1p(np.exp(logits[t])))
        selection = s.astype(np.float32)
        if bias is not None:
            selection = (selection.astype(np.float64) + bias).astype(np.float32)
        selection = selection.astype(np.float64)
        selection[np.isnan(selection)] = -np.inf
        if top_groups < groups:
            parts = selection.reshape(groups, -1)
            sums = [float(np.float32(np.sort(p)[-2:].sum())) for p in parts]
            kept = sorted(range(groups), key=lambda g: (-sums[g], g))[:top_groups]
            for g in range(groups):
                if g not in kept:
                    parts[g] = -np.inf
        chosen = sorted(range(experts), key=lambda e: (-selection[e], e))[:k]
        w = s[chosen]
        if renormalize:
            w = softmax(logits[t][chosen]) if score == "softmax" else w / (w.sum() + 1e-20)
        weights[t], indices[t] = w * scale, chosen
    return weights, indices


def hash_route(logits, tokens, table, score, renormalize=False, scale=1.0):
    """-> weights, indices."""
    indices = np.array([table[token] for token in tokens], np.int32).reshape(len(tokens), table.shape[1])
    scores = 1 / (1 + np.exp(-logits)) if score == "sigmoid" else np.sqrt(np.log1p(np.exp(logits)))
    weights = np.take_along_axis(scores, indices, axis=1)
    return (weights / (weights.sum(1, keepdims=True) + 1e-20) if renormalize else weights) * scale, indices


def hyper_weights(products, streams, scale, base, iterations, epsilon, norm_epsilon):
    """streams [T, n, features]. -> rows of pre, post, mix."""
    tokens, n = streams.shape[:2]
    flat = streams.reshape(tokens, n * streams.shape[2])
    x = products / np.sqrt((flat * flat).mean(1, keepdims=True) + norm_epsilon)
    rows = [1 / (1 + np.exp(-(x[:, :n] * scale[0] + base[:n]))) + epsilon]
    if products.shape[1] > n:
        rows.append(2 / (1 + np.exp(-(x[:, n:2 * n] * scale[1] + base[n:2 * n]))))
        mix = np.exp(x[:, 2 * n:] * scale[2] + base[2 * n:]).reshape(tokens, n, n)
        mix = mix / mix.sum(2, keepdims=True) + epsilon
        mix = mix / (mix.sum(1, keepdims=True) + epsilon)
        for _ in range(iterations - 1):
            mix = mix / (mix.sum(2, keepdims=True) + epsilon)
            mix = mix / (mix.sum(1, keepdims=True) + epsilon)
        rows.append(mix.reshape(tokens, n * n))
    return np.concatenate(rows, 1)


def hyper_collapse(streams, weights):
    return np.einsum("tn,tnd->td", weights[:, :streams.shape[1]], streams)


def hyper_expand(y, streams, weights):
    tokens, n = streams.shape[:2]
    post, mix = weights[:, n:2 * n], weights[:, 2 * n:].reshape(tokens, n, n)
    return post[:, :, None] * y[:, None] + np.einsum("tjk,tjd->tkd", mix, streams)


def compress(keys, gates, bias, channels):
    """A whole sequence: keys and gates [tokens, c channels], bias [ratio, c channels]. -> [tokens, channels]."""
    ratio, overlaps = len(bias), keys.shape[1] == 2 * channels
    gates = gates + np.array([bias[t % ratio] for t in range(len(keys))]).reshape(gates.shape)
    out = np.zeros((len(keys), channels))
    for last in range(ratio - 1, len(keys), ratio):
        first = last - ratio + 1
        k, g = keys[first:last + 1, -channels:], gates[first:last + 1, -channels:]
        if overlaps and first > 0:
            k = np.concatenate([keys[first - ratio:first, :channels], k])
            g = np.concatenate([gates[first - ratio:first, :channels], g])
        e = np.exp(g - g.max(0))
        out[last] = (e / e.sum(0) * k).sum(0)
    return out


def select_entries(query, weights, entries, positions, sequences, ratio, count):
    """entries[s] [entries, dim]: all of sequence s. -> ascending, -1 behind."""
    out = np.full((len(query), count), -1, np.int32)
    for t in range(len(query)):
        visible = (positions[t] + 1) // ratio
        scores = []
        for w in range(visible):
            products = query[t] @ entries[sequences[t]][w]
            score = np.float32((weights[t] * np.where(products < 0, 0, products)).sum())
            scores.append(-np.inf if np.isnan(score) else float(score))
        chosen = sorted(sorted(range(visible), key=lambda w: (-scores[w], w))[:count])
        out[t, :len(chosen)] = chosen
    return out


def compressed_attention(query, rows, entries, positions, sequences, scale, window, ratio, sinks=None, indices=None):
    """rows[s] [length, dim] and entries[s] [entries, dim]: the whole past of sequence s."""
    out = np.zeros(query.shape)
    for t in range(len(query)):
        p, s = positions[t], sequences[t]
        seen = [w for w in range((p + 1) // ratio) if indices is None or w in indices[t]]
        k = np.concatenate([rows[s][max(0, p - window + 1):p + 1], entries[s][seen]])
        for h in range(query.shape[1]):
            score = k @ query[t, h] * scale
            probability = softmax(score if sinks is None else np.append(score, sinks[h]))
            out[t, h] = probability[:len(k)] @ k
    return out


def group_tokens(indices, experts):
    """-> offsets, the pairs that are defined."""
    flat = indices.reshape(-1)
    lists = [[p for p in range(len(flat)) if flat[p] == e] for e in range(experts)]
    return np.cumsum([0] + [len(members) for members in lists]).astype(np.int32), np.array(sum(lists, []), np.int32)


def activation(kind, gate, up, alpha=1.0, beta=0.0, limit=0.0):
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    if kind == "silu":
        return gate * sigmoid(gate) * up
    if kind == "gelu":
        return gate * 0.5 * (1 + np.vectorize(math.erf)(gate / math.sqrt(2))) * up
    if kind == "gelu_tanh":
        return 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3))) * up
    if kind == "relu":
        return np.maximum(gate, 0) * up
    if kind == "swiglu":
        if limit:
            gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
        return gate * sigmoid(alpha * gate) * (up + beta)
    assert kind == "situ"
    return beta * np.tanh(gate / beta) * sigmoid(gate) * (alpha * np.tanh(up / alpha) if alpha else up)


def split(a, interleaved):
    half = a.shape[-1] // 2
    return (a[..., 0::2], a[..., 1::2]) if interleaved else (a[..., :half], a[..., half:])


def experts(x, indices, weights, gate_up, down, act, interleaved=False, gate_up_bias=None, down_bias=None, residual=None,
            input_type="f32"):
    """act: (gate, up) -> activation."""
    out = np.zeros((len(x), down.shape[1]))
    for t in range(len(x)):
        for j, e in enumerate(indices[t]):
            if e < 0:
                continue
            a = gate_up[e] @ x[t] + (0.0 if gate_up_bias is None else gate_up_bias[e])
            h = round_to(input_type, act(*split(a, interleaved)))
            y = down[e] @ h + (0.0 if down_bias is None else down_bias[e])
            out[t] += weights[t, j] * round_to("f32", y)
    return out + (0.0 if residual is None else residual)


def attention(query, keys, values, positions, sequences, scale, window=0, softcap=0.0, sinks=None, indices=None):
    """keys[s] [length, kv_heads, dim]: the whole past of sequence s. Masked scores are written out and softmaxed densely."""
    tokens, heads, _ = query.shape
    group = heads // keys[0].shape[1]
    out = np.zeros((tokens, heads, values[0].shape[2]))
    for t in range(tokens):
        k, v, p = keys[sequences[t]], values[sequences[t]], positions[t]
        visible = np.array([j <= p and (window == 0 or p - j < window) and (indices is None or j in indices[t])
                            for j in range(len(k))])
        if not visible.any():
            continue
        for h in range(heads):
            score = k[:, h // group] @ query[t, h] * scale
            if softcap:
                score = softcap * np.tanh(score / softcap)
            score = np.where(visible, score, -np.inf)
            if sinks is not None:
                score = np.append(score, sinks[h])
            probability = softmax(score)
            out[t, h] = probability[: len(k)] @ np.where(visible[:, None], v[:, h // group], 0.0)
    return out


def select_keys(query, weights, keys, positions, sequences, scale, top_k):
    """keys[s] [length, dim]. The positions of the largest scores, ascending."""
    chosen = np.full((len(query), top_k), -1)
    for t, position in enumerate(positions):
        with np.errstate(invalid="ignore", over="ignore"):
            products = query[t] @ keys[sequences[t]][: position + 1].T
            scores = np.float32(scale * (weights[t][:, None] * np.where(products < 0, 0.0, products)).sum(0))
        scores = np.where(np.isnan(scores), -np.inf, scores)
        best = sorted(sorted(range(len(scores)), key=lambda j: (-scores[j], j))[:top_k])
        chosen[t, : len(best)] = best
    return chosen


def sample(logits, temperature, top_k, top_p, random):
    """One token from one row, by exact integers from the weights on."""
    x = np.where(np.isnan(logits), -np.inf, logits)
    order = sorted(range(len(x)), key=lambda column: (-x[column], column))
    if not temperature >= 2.0**-126 or top_k == 1 or np.isinf(x.max()):
        return order[0]
    weights = [int(2.0**40 * math.exp((value - x.max()) / temperature)) if value > -np.inf else 0 for value in x]
    kept = order[:top_k] if top_k > 0 else order
    if top_p < 1:
        total = sum(weights[column] for column in kept)
        wanted = min(max(math.ceil(top_p * float(total)), 1), total)
        sums = np.cumsum([weights[column] for column in kept], dtype=object)
        kept = kept[:1 + next(i for i, reached in enumerate(sums) if reached >= wanted)]
    total, running = sum(weights[column] for column in kept), 0
    point = min(math.floor(random * float(total)), total - 1)
    for column in sorted(kept):
        running += weights[column]
        if running > point:
            return column


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gate(function, x):
    return x * sigmoid(x) if function == "silu" else sigmoid(x)


def causal_conv(rows, weight, silu=False):
    """rows: a sequence's whole input [length, channels], which begins after zeros; weight [channels, size]."""
    size = weight.shape[1]
    padded = np.concatenate([np.zeros((size - 1, rows.shape[1])), rows])
    y = np.array([(padded[t : t + size].T * weight).sum(1) for t in range(len(rows))]).reshape(rows.shape)
    return gate("silu", y) if silu else y


def decay_gate(x, a_log, bias, lower_bound=None):
    """x [T, heads, channels] or [T, heads]; a_log belongs to heads and may be padded."""
    a = np.exp(a_log[: x.shape[1]]).reshape((1, -1) + (1,) * (x.ndim - 2))
    return -a * np.log(1 + np.exp(x + bias)) if lower_bound is None else lower_bound * sigmoid(a * (x + bias))


def delta_rule(state, query, key, value, decay, beta, scale, epsilon=None):
    """One head of one sequence, a token a row: -> results, the state afterwards."""
    normal = lambda x: x if epsilon is None else x / np.sqrt((x * x).sum() + epsilon)
    results = []
    for q, k, v, g, b in zip(query, key, value, decay, beta):
        q, k = normal(q) * scale, normal(k)
        state = np.diag(np.exp(np.broadcast_to(g, k.shape))) @ state
        state = state + np.outer(b * k, v - state.T @ k)
        results.append(state.T @ q)
    return np.array(results).reshape(-1, value.shape[-1]), state
