"""Small checkpoints of Kimi K3 and K3.1 of random weights: names, types and packing of the release, every feature, and no two sizes alike that
could be taken for each other. Tensors lie out of order in two shards."""

import json
import os

import numpy as np

from differential_programs import encode

HIDDEN, HEADS, DIM, VOCABULARY = 128, 3, 32, 512
LAYERS, FULL = 9, [3, 6, 8, 9]  # counted from 1
EXPERTS, LATENT, INNER, SHARED = 12, 96, 64, 2
TEXT = dict(
    model_type="kimi_linear", vocab_size=VOCABULARY, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
    num_key_value_heads=HEADS, intermediate_size=256, first_k_dense_replace=1, moe_layer_freq=1, moe_intermediate_size=INNER,
    routed_expert_hidden_size=LATENT, num_experts=EXPERTS, num_experts_per_token=4, num_shared_experts=SHARED, moe_renormalize=True,
    routed_scaling_factor=1.0, moe_router_activation_func="sigmoid", num_expert_group=1, topk_group=1, topk_method="noaux_tc",
    latent_moe_use_norm=True, hidden_act="situ", activation_situ_beta=4.0, activation_situ_linear_beta=25.0, q_lora_rank=48, kv_lora_rank=64,
    qk_nope_head_dim=32, qk_rope_head_dim=16, v_head_dim=32, mla_use_nope=True, mla_use_output_gate=True, attn_res_block_size=4,
    rms_norm_eps=1e-5, max_position_embeddings=1024, num_nextn_predict_layers=0, tie_word_embeddings=False,
    linear_attn_config=dict(num_heads=HEADS, head_dim=DIM, short_conv_kernel_size=4, use_full_rank_gate=True, gate_lower_bound=-5.0,
                            full_attn_layers=FULL, kda_layers=[n for n in range(1, LAYERS + 1) if n not in FULL]))
DSA = dict(num_heads=4, head_dim=32, top_k=8, layers=FULL)
VISION = dict(
    patch_size=4, init_pos_emb_height=6, init_pos_emb_width=6, init_pos_emb_time=4, pos_emb_type="divided_fixed",
    pos_emb_interpolation_mode="bilinear", vt_num_attention_heads=2, vt_num_hidden_layers=2, vt_hidden_size=48, vt_intermediate_size=96,
    qkv_hidden_size=64, merge_kernel_size=[2, 2], merge_type="sd2_tpool", mm_projector_type="patchmergerv2", projector_hidden_act="gelu",
    projector_ln_eps=1e-5, norm_type="rmsnorm", mlp_type="mlp2", activation_func="gelu_pytorch_tanh", attn_bias=False, linear_bias=False,
    patch_embed_proj_bias=False)
PLACEHOLDER = 500  # the token that stands for an image
# What each variant changes in the config.
VARIANTS = {
    "k3": {},
    "groups": dict(num_expert_group=3, topk_group=2),
    "negative-bias": dict(num_expert_group=3, topk_group=2),  # a group that is left out is not worth 0, which is more than all others
    "scaling": dict(routed_scaling_factor=2.5),
    "plain-up": dict(activation_situ_linear_beta=None),
    "ordinary-residuals": dict(attn_res_block_size=None),
    "no-latent": dict(routed_expert_hidden_size=None),
    "epsilon": dict(rms_norm_eps=1e-3),
    "k31": dict(dsa_config=DSA),
    "vision": {},
    # Without recurrent layers: sequences can be truncated to any token.
    "vision-paged": dict(num_hidden_layers=3, linear_attn_config=TEXT["linear_attn_config"] | dict(full_attn_layers=[1, 2, 3], kda_layers=[])),
}


class Maker:
    def __init__(self, variant, seed=7):
        self.variant, self.rng, self.tensors = variant, np.random.default_rng(seed), {}
        self.text = TEXT | VARIANTS[variant]

    def put(self, name, x, dtype="bf16"):
        self.tensors["language_model." + name] = (dtype, np.asarray(x, np.float64))

    def matrix(self, name, rows, columns, std=0.05):
        self.put(name + ".weight", std * self.rng.normal(size=(rows, columns)))

    def norm(self, name, size, dtype="bf16"):
        self.put(name + ".weight", 1 + 0.1 * self.rng.normal(size=size), dtype)

    def packed(self, name, rows, columns):
        self.put(name + ".weight_packed", self.rng.integers(0, 256, size=(rows, columns // 2)), "u8")
        self.put(name + ".weight_scale", self.rng.integers(119, 123, size=(rows, columns // 32)), "u8")

    def mix(self, name):
        self.norm(name + "_norm", HIDDEN)
        self.put(name + "_proj.weight", 0.2 * self.rng.normal(size=(1, HIDDEN)))

    def gated_layer(self, name, inner):
        self.matrix(name + ".gate_proj", inner, HIDDEN, 0.15)
        self.matrix(name + ".up_proj", inner, HIDDEN, 0.15)
        self.matrix(name + ".down_proj", HIDDEN, inner)

    def delta_attention(self, name):
        width, rng = HEADS * DIM, self.rng
        for part in "qkv":
            self.matrix(f"{name}.{part}_proj", width, HIDDEN)
            self.put(f"{name}.{part}_conv1d.weight", 0.5 * rng.normal(size=(width, 1, 4)), "f32")
        self.matrix(name + ".f_a_proj", DIM, HIDDEN)
        self.matrix(name + ".f_b_proj", width, DIM, 0.15)
        self.matrix(name + ".b_proj", HEADS, HIDDEN, 0.15)
        self.put(name + ".A_log", np.concatenate([rng.uniform(-1, 1, size=HEADS), np.zeros(32 - HEADS)]), "f32")  # padded
        bias = rng.normal(size=width)
        bias[3::16], bias[5::16] = 6, -6  # forgets all, forgets nothing
        self.put(name + ".dt_bias", bias, "f32")
        self.matrix(name + ".g_proj", width, HIDDEN, 0.15)
        self.norm(name + ".o_norm", DIM, "f32")
        self.matrix(name + ".o_proj", HIDDEN, width)

    def latent_attention(self, name):
        # Small latents: the norm's own epsilon, which is not the config's, can be seen.
        std = 1e-4 if self.variant == "epsilon" else 0.15
        self.matrix(name + ".q_a_proj", 48, HIDDEN, std)
        self.norm(name + ".q_a_layernorm", 48)
        self.matrix(name + ".q_b_proj", HEADS * 48, 48, 0.15)
        self.matrix(name + ".kv_a_proj_with_mqa", 64 + 16, HIDDEN, std)
        self.norm(name + ".kv_a_layernorm", 64)
        self.matrix(name + ".kv_b_proj", HEADS * 64, 64, 0.15)
        self.matrix(name + ".g_proj", HEADS * 32, HIDDEN, 0.15)
        self.matrix(name + ".o_proj", HIDDEN, HEADS * 32)
        if "dsa_config" in self.text:
            self.matrix(name + ".indexer.wq_b", 4 * 32, 48, 0.15)
            self.matrix(name + ".indexer.wk", 32, HIDDEN, 5e-4)  # small keys: the norm's epsilon can be seen
            self.matrix(name + ".indexer.weights_proj", 4, HIDDEN, 0.15)
            self.norm(name + ".indexer.k_norm", 32)
            self.put(name + ".indexer.k_norm.bias", self.rng.normal(size=32))

    def mixture(self, name):
        latent = self.text["routed_expert_hidden_size"]
        # Logits have a deviation of 1.5; the bias changes the choice of many tokens.
        self.matrix(name + ".gate", EXPERTS, HIDDEN, 1.5 / HIDDEN**0.5)
        bias = 0.5 * self.rng.normal(size=EXPERTS)
        self.put(name + ".gate.e_score_correction_bias", bias - 10 if self.variant == "negative-bias" else bias, "f32")
        if latent:
            self.matrix(name + ".routed_expert_down_proj", latent, HIDDEN, 0.15)
            self.norm(name + ".routed_expert_norm", latent)
            self.matrix(name + ".routed_expert_up_proj", HIDDEN, latent)
        for e in range(EXPERTS):
            for part, (rows, columns) in dict(w1=(INNER, latent or HIDDEN), w3=(INNER, latent or HIDDEN), w2=(latent or HIDDEN, INNER)).items():
                self.packed(f"{name}.experts.{e}.{part}", rows, columns)
        self.gated_layer(name + ".shared_experts", SHARED * INNER)

    def make(self):
        self.put("model.embed_tokens.weight", self.rng.normal(size=(VOCABULARY, HIDDEN)))
        full = self.text["linear_attn_config"]["full_attn_layers"]
        for n in range(self.text["num_hidden_layers"]):
            name = f"model.layers.{n}"
            self.norm(name + ".input_layernorm", HIDDEN)
            self.norm(name + ".post_attention_layernorm", HIDDEN)
            if self.text["attn_res_block_size"]:
                self.mix(name + ".self_attention_res")
                self.mix(name + ".mlp_res")
            (self.latent_attention if n + 1 in full else self.delta_attention)(name + ".self_attn")
            if n == 0:
                self.gated_layer(name + ".mlp", 256)
            else:
                self.mixture(name + ".block_sparse_moe")
        if self.text["attn_res_block_size"]:
            self.mix("model.output_attn_res")
        self.norm("model.norm", HIDDEN)
        self.matrix("lm_head", VOCABULARY, HIDDEN, 0.15)
        if self.variant.startswith("vision"):
            self.vision()
            return
        self.tensors["vision_tower.encoder.final_layernorm.weight"] = ("bf16", np.ones(48))
        self.tensors["mm_projector.post_norm.weight"] = ("bf16", np.ones(HIDDEN))

    def vision(self):
        c, rng = VISION, self.rng
        hidden, width, inner, side = c["vt_hidden_size"], c["qkv_hidden_size"], c["vt_intermediate_size"], c["patch_size"]

        def put(name, x):
            self.tensors[name + ".weight"] = ("bf16", np.asarray(x, np.float64))

        put("vision_tower.patch_embed.proj", rng.normal(size=(hidden, 3, side, side)) * 0.15)
        put("vision_tower.patch_embed.pos_emb", rng.normal(size=(c["init_pos_emb_height"], c["init_pos_emb_width"], hidden)))
        for n in range(c["vt_num_hidden_layers"]):
            name = f"vision_tower.encoder.blocks.{n}"
            put(name + ".norm0", 1 + 0.1 * rng.normal(size=hidden))
            put(name + ".norm1", 1 + 0.1 * rng.normal(size=hidden))
            # Queries and keys are large enough for attention to prefer some patches.
            put(name + ".wqkv", rng.normal(size=(3 * width, hidden)) * 0.2)
            put(name + ".wo", rng.normal(size=(hidden, width)) * 0.1)
            put(name + ".mlp.fc0", rng.normal(size=(inner, hidden)) * 0.15)
            put(name + ".mlp.fc1", rng.normal(size=(hidden, inner)) * 0.1)
        put("vision_tower.encoder.final_layernorm", 1 + 0.1 * rng.normal(size=hidden))
        put("mm_projector.proj.0", rng.normal(size=(4 * hidden, 4 * hidden)) * 0.1)
        put("mm_projector.proj.2", rng.normal(size=(HIDDEN, 4 * hidden)) * 0.1)
        put("mm_projector.post_norm", 1 + 0.1 * rng.normal(size=HIDDEN))

    def config(self):
        architecture = "KimiK31ForConditionalGeneration" if "dsa_config" in self.text else "KimiK3ForConditionalGeneration"
        quantization = dict(quant_method="compressed-tensors", format="mxfp4-pack-quantized")
        config = dict(architectures=[architecture], model_type="kimi_k3", dtype="bfloat16", text_config=self.text,
                      quantization_config=quantization)
        if self.variant.startswith("vision"):
            config |= dict(vision_config=VISION, media_placeholder_token_id=PLACEHOLDER)
        return config

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
            json.dump(self.config(), file, indent=1)
        names = list(self.rng.permutation(sorted(self.tensors)))
        shards, places = [names[0::2], names[1::2]], {}
        for i, members in enumerate(shards, 1):
            header, data = {}, b""
            for name in members:
                dtype, x = self.tensors[name]
                raw = (x.astype("u1") if dtype == "u8" else encode(dtype, x)).tobytes()
                header[name] = {"dtype": dtype.upper(), "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
                data += raw
                places[name] = f"model-0000{i}-of-00002.safetensors"
            text = json.dumps(header).encode()
            text += b" " * (-len(text) % 8)
            with open(f"{folder}/model-0000{i}-of-00002.safetensors", "wb") as file:
                file.write(len(text).to_bytes(8, "little") + text + data)
        with open(f"{folder}/model.safetensors.index.json", "w", encoding="utf-8") as file:
            json.dump({"metadata": {}, "weight_map": places}, file)


def make(variant, folder):
    maker = Maker(variant)
    maker.make()
    maker.write(folder)
