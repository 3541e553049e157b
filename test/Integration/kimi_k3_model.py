"""Kimi K3 and K3.1 in numpy, one obvious step after the other: what compiled models are compared with. Written from the descriptions of
the architecture; nothing is shared with the compiler. `model.run(tokens, dtype)` computes all of it in the type, f64 or f32."""

import json
import os
import struct

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


def read_tensors(folder):
    """name -> array; bf16 as f32, U8 as it is."""
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if not name.startswith("model") or not name.endswith(".safetensors"):
            continue
        with open(f"{folder}/{name}", "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header, data = json.loads(file.read(length)), file.read()
        for key, entry in header.items():
            if key != "__metadata__":
                raw = data[slice(*entry["data_offsets"])]
                if entry["dtype"] == "BF16":
                    array = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
                else:
                    array = np.frombuffer(raw, {"F32": "<f4", "U8": "u1"}[entry["dtype"]])
                tensors[key] = array.reshape(entry["shape"])
    return tensors


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, config, tensors, prefix="language_model."):
        self.config, self.tensors, self.prefix = config.get("text_config", config), tensors, prefix

    @classmethod
    def read(cls, folder):
        with open(f"{folder}/config.json", encoding="utf-8") as file:
            return cls(json.load(file), read_tensors(folder))

    def get(self, name):
        return self.tensors[self.prefix + name].astype(self.dtype)

    def linear(self, name, x):
        return x @ self.get(name + ".weight").T

    def norm(self, name, x, epsilon=None):
        epsilon = self.config["rms_norm_eps"] if epsilon is None else epsilon
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.dtype(epsilon)) * self.get(name + ".weight")

    def run(self, tokens, dtype=np.float64, indices=None, images=()):
        """-> logits. `self.seen` has what tests look at. With `indices` (one [T, k] a DSA layer) the indexer's choice is given. `images`:
        pairs of a position and the embeddings that are there and behind it, whatever the tokens are."""
        self.dtype, self.seen, self.given = dtype, dict(residual=[], router=[], dsa=[]), indices
        c = self.config
        p, snapshots = self.get("model.embed_tokens.weight")[tokens], []
        for position, embeddings in images:
            p[position:position + len(embeddings)] = embeddings
        block = c.get("attn_res_block_size")
        for n in range(c["num_hidden_layers"]):
            name = f"model.layers.{n}"
            x = self.mix(name + ".self_attention_res", snapshots, p) if block and snapshots else p
            if block and n % block == 0:
                snapshots.append(p)
                p = 0
            x = self.norm(name + ".input_layernorm", x)
            is_full = n + 1 in c["linear_attn_config"]["full_attn_layers"]
            p = p + (self.latent_attention if is_full else self.delta_attention)(name + ".self_attn", x)
            y = self.mix(name + ".mlp_res", snapshots, p) if block else p
            y = self.norm(name + ".post_attention_layernorm", y)
            p = p + (self.gated_layer(name + ".mlp", y) if n < c["first_k_dense_replace"] else self.mixture(name + ".block_sparse_moe", y))
            self.seen["residual"].append(p)
        x = self.mix("model.output_attn_res", snapshots, p) if block else p
        return self.linear("lm_head", self.norm("model.norm", x))

    def mix(self, name, snapshots, p):
        candidates = np.stack(snapshots + [p])  # [n, T, D]
        keys = self.norm(name + "_norm", candidates)
        scores = (keys * self.get(name + "_proj.weight")[0]).sum(-1)  # [n, T]
        return (softmax(scores.T).T[..., None] * candidates).sum(0)

    def delta_attention(self, name, x):
        c = self.config["linear_attn_config"]
        heads, dim, taps = c["num_heads"], c["head_dim"], c["short_conv_kernel_size"]
        T = len(x)

        def conv(part):
            y = self.linear(f"{name}.{part}_proj", x)
            padded = np.concatenate([np.zeros((taps - 1, y.shape[1]), self.dtype), y])
            w = self.get(f"{name}.{part}_conv1d.weight")[:, 0]
            y = sum(w[:, j] * padded[j:j + T] for j in range(taps))
            return (y * sigmoid(y)).reshape(T, heads, dim)

        def unit(v):
            return v / np.sqrt((v * v).sum(-1, keepdims=True) + self.dtype(1e-6))

        q, k, v = unit(conv("q")) * self.dtype(dim**-0.5), unit(conv("k")), conv("v")
        z = self.linear(name + ".f_b_proj", self.linear(name + ".f_a_proj", x)) + self.get(name + ".dt_bias")
        z, rate = z.reshape(T, heads, dim), np.exp(self.get(name + ".A_log").reshape(-1)[:heads])[:, None]
        bound = c.get("gate_lower_bound")
        decay = -rate * np.log1p(np.exp(z)) if bound is None else bound * sigmoid(rate * z)
        beta = sigmoid(self.linear(name + ".b_proj", x))
        state, out = np.zeros((heads, dim, dim), self.dtype), np.zeros((T, heads, dim), self.dtype)
        for t in range(T):
            state = np.exp(decay[t])[..., None] * state
            error = v[t] - np.einsum("hkv,hk->hv", state, k[t])
            state = state + beta[t][:, None, None] * k[t][:, :, None] * error[:, None, :]
            out[t] = np.einsum("hkv,hk->hv", state, q[t])
        gate = self.linear(name + ".g_proj", x) if c.get("use_full_rank_gate") else self.linear(name + ".g_b_proj", self.linear(name + ".g_a_proj", x))
        out = self.norm(name + ".o_norm", out) * sigmoid(gate.reshape(T, heads, dim))
        return self.linear(name + ".o_proj", out.reshape(T, -1))

    def latent_attention(self, name, x):
        c, T = self.config, len(x)
        heads, plain, shared, width, latent = (c[key] for key in ("num_attention_heads", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                                                                  "kv_lora_rank"))
        compressed = self.norm(name + ".q_a_layernorm", self.linear(name + ".q_a_proj", x), 1e-6)
        q = self.linear(name + ".q_b_proj", compressed).reshape(T, heads, plain + shared)
        kv = self.linear(name + ".kv_a_proj_with_mqa", x)
        content = self.norm(name + ".kv_a_layernorm", kv[:, :latent], 1e-6)
        expanded = self.linear(name + ".kv_b_proj", content).reshape(T, heads, plain + width)
        scores = np.einsum("thd,shd->hts", q[..., :plain], expanded[..., :plain]) + np.einsum("thd,sd->hts", q[..., plain:], kv[:, latent:])
        visible = np.tril(np.ones((T, T), bool))
        if c.get("dsa_config"):
            visible &= self.choose(name + ".indexer", x, compressed)
        scores = np.where(visible, scores * self.dtype((plain + shared)**-0.5), -np.inf)
        out = np.einsum("hts,shv->thv", softmax(scores), expanded[..., plain:]).reshape(T, -1)
        if c.get("mla_use_output_gate"):
            out = out * sigmoid(self.linear(name + ".g_proj", x))
        return self.linear(name + ".o_proj", out)

    def choose(self, name, x, compressed):
        """Which positions each token sees: the best of those up to its own, the lower one first where scores are equal."""
        c, T = self.config["dsa_config"], len(x)
        heads, dim, count = c["num_heads"], c["head_dim"], c["top_k"]
        q = self.linear(name + ".wq_b", compressed).reshape(T, heads, dim)
        k = self.linear(name + ".wk", x)
        k = k - k.mean(-1, keepdims=True)
        k = k / np.sqrt((k * k).mean(-1, keepdims=True) + self.dtype(self.config["rms_norm_eps"])) * self.get(name + ".k_norm.weight")
        k = k + self.get(name + ".k_norm.bias")
        w = self.linear(name + ".weights_proj", x)
        scores = np.einsum("th,ths->ts", w, np.maximum(np.einsum("thd,sd->ths", q, k), 0)) * self.dtype((heads * dim)**-0.5)
        chosen, rows = np.zeros((T, T), bool), np.full((T, count), -1)
        for t in range(T):
            best = np.sort(np.argsort(-scores[t, :t + 1], kind="stable")[:count])
            rows[t, :len(best)] = best
        if self.given is not None:
            rows = self.given[len(self.seen["dsa"])]
        for t in range(T):
            chosen[t, rows[t][rows[t] >= 0]] = True
        self.seen["dsa"].append(rows)
        self.seen.setdefault("dsa_scores", []).append(scores)
        return chosen

    def activate(self, gate, up):
        c = self.config
        if c["hidden_act"] == "silu":
            return gate * sigmoid(gate) * up
        beta, linear_beta = c["activation_situ_beta"], c["activation_situ_linear_beta"]
        if linear_beta is not None:
            up = linear_beta * np.tanh(up / linear_beta)
        return beta * np.tanh(gate / beta) * sigmoid(gate) * up

    def gated_layer(self, name, x):
        return self.linear(name + ".down_proj", self.activate(self.linear(name + ".gate_proj", x), self.linear(name + ".up_proj", x)))

    def expert_matrix(self, name):
        if self.prefix + name + ".weight_packed" not in self.tensors:
            return self.get(name + ".weight")
        packed, scale = self.tensors[self.prefix + name + ".weight_packed"], self.tensors[self.prefix + name + ".weight_scale"]
        codes = np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)
        return (E2M1[codes] * np.repeat(np.ldexp(1.0, scale.astype(int) - 127), 32, axis=-1)).astype(self.dtype)

    def route(self, name, x):
        c = self.config
        scores = sigmoid(self.linear(name, x))
        selection = scores + self.get(name + ".e_score_correction_bias")
        groups, kept, k = c.get("num_expert_group", 1), c.get("topk_group", 1), c["num_experts_per_token"]
        if groups > 1 and kept < groups:
            parts = selection.reshape(len(x), groups, -1)
            sums = np.sort(parts, -1)[..., -2:].sum(-1)
            dropped = np.argsort(-sums, -1, kind="stable")[:, kept:]
            for t in range(len(x)):
                parts[t, dropped[t]] = -np.inf
        indices = np.argsort(-selection, -1, kind="stable")[:, :k]
        weights = np.take_along_axis(scores, indices, -1)
        if c["moe_renormalize"] and k > 1:
            weights = weights / (weights.sum(-1, keepdims=True) + self.dtype(1e-20))
        self.seen["router"].append(indices)
        self.seen.setdefault("router_selection", []).append((scores, selection))
        return indices, weights * self.dtype(c["routed_scaling_factor"])

    def mixture(self, name, x):
        c = self.config
        indices, weights = self.route(name + ".gate", x)
        latent = c.get("routed_expert_hidden_size")
        inner = self.linear(name + ".routed_expert_down_proj", x) if latent else x
        result = np.zeros_like(inner)
        for e in range(c["num_experts"]):
            rows, choice = np.nonzero(indices == e)
            if len(rows):
                w1, w2, w3 = (self.expert_matrix(f"{name}.experts.{e}.w{i}") for i in (1, 2, 3))
                y = self.activate(inner[rows] @ w1.T, inner[rows] @ w3.T) @ w2.T
                result[rows] += weights[rows, choice][:, None] * y
        if latent:
            if c.get("latent_moe_use_norm"):
                result = self.norm(name + ".routed_expert_norm", result)
            result = self.linear(name + ".routed_expert_up_proj", result)
        return result + self.gated_layer(name + ".shared_experts", x)
