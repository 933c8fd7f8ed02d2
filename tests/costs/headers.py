"""Writes checkpoints of published models that have headers and no data (sparse files).

    headers.write_model('Llama-3.1-70B', 'fp8', FOLDER)
"""
import json, os
BITS = {'BF16': 16, 'F8_E4M3': 8, 'F32': 32, 'U8': 8, 'I32': 32, 'I64': 64, 'F8_E8M0': 8}
def size(dtype, shape):
    n = BITS[dtype]
    for s in shape: n *= s
    return n // 8
def write(folder, tensors, config):
    os.makedirs(folder, exist_ok=True)
    with open(folder + '/config.json', 'w') as f: json.dump(config, f)
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + size(dtype, shape)
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [at, end]}
        at = end
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    with open(folder + '/model.safetensors', 'wb') as f:
        f.write(len(text).to_bytes(8, 'little') + text)
        f.truncate(8 + len(text) + at)
class Weights:
    """Adds linear weights in a storage format."""
    def __init__(self, form): self.form, self.all = form, {}
    def plain(self, name, shape, dtype='BF16'): self.all[name] = (dtype, shape)
    def linear(self, name, out, inn):
        f, a = self.form, self.all
        if f == 'fp8': a[name + '.weight'] = ('F8_E4M3', [out, inn]); a[name + '.weight_scale'] = ('F32', [])
        elif f == 'fp8_block':
            a[name + '.weight'] = ('F8_E4M3', [out, inn])
            a[name + '.weight_scale_inv'] = ('F32', [-(-out // 128), -(-inn // 128)])
        elif f == 'nvfp4':
            a[name + '.weight'] = ('U8', [out, inn // 2]); a[name + '.weight_scale'] = ('F8_E4M3', [out, inn // 16])
            a[name + '.weight_scale_2'] = ('F32', [])
        elif f == 'int4':
            a[name + '.weight_packed'] = ('I32', [out, inn // 8]); a[name + '.weight_scale'] = ('BF16', [out, inn // 32])
            a[name + '.weight_shape'] = ('I64', [2])
        else: a[name + '.weight'] = ('BF16', [out, inn])
QUANT = {
    'bf16': None, 'mxfp4': {'quant_method': 'mxfp4'},
    'fp8': {'quant_method': 'fp8'},
    'fp8_block': {'quant_method': 'fp8', 'weight_block_size': [128, 128]},
    'nvfp4': {'quant_method': 'modelopt', 'quant_algo': 'NVFP4'},
    'int4': {'quant_method': 'compressed-tensors', 'format': 'pack-quantized',
             'config_groups': {'group_0': {'weights': {'num_bits': 4, 'group_size': 32, 'type': 'int', 'symmetric': True, 'strategy': 'group'}}}},
}
def frame(w, c):
    w.plain('model.embed_tokens.weight', [c['vocab_size'], c['hidden_size']])
    w.plain('model.norm.weight', [c['hidden_size']])
    w.plain('lm_head.weight', [c['vocab_size'], c['hidden_size']])
def attention(w, c, p, norm=None):
    h, d = c['hidden_size'], c['head_dim']
    q, k = c['num_attention_heads'] * d, c['num_key_value_heads'] * d
    for n, o, i in (('q', q, h), ('k', k, h), ('v', k, h), ('o', h, q)): w.linear(f'{p}self_attn.{n}_proj', o, i)
    if norm == 'head': w.plain(p + 'self_attn.q_norm.weight', [d]); w.plain(p + 'self_attn.k_norm.weight', [d])
    if norm == 'all': w.plain(p + 'self_attn.q_norm.weight', [q]); w.plain(p + 'self_attn.k_norm.weight', [k])
    for n in ('input', 'post_attention'): w.plain(f'{p}{n}_layernorm.weight', [h])
def dense(c, form):
    w = Weights(form); frame(w, c)
    for i in range(c['num_hidden_layers']):
        p = f'model.layers.{i}.'
        attention(w, c, p, 'head' if c['model_type'] == 'qwen3' else None)
        for n in ('gate', 'up'): w.linear(f'{p}mlp.{n}_proj', c['intermediate_size'], c['hidden_size'])
        w.linear(p + 'mlp.down_proj', c['hidden_size'], c['intermediate_size'])
    return w.all
def qwen3_moe(c, form):
    w = Weights(form); frame(w, c); h, m = c['hidden_size'], c['moe_intermediate_size']
    for i in range(c['num_hidden_layers']):
        p = f'model.layers.{i}.'
        attention(w, c, p, 'head'); w.plain(p + 'mlp.gate.weight', [c['num_experts'], h])
        for e in range(c['num_experts']):
            for n, o, k in (('gate', m, h), ('up', m, h), ('down', h, m)): w.linear(f'{p}mlp.experts.{e}.{n}_proj', o, k)
    return w.all
def minimax_m2(c, form):
    w = Weights(form); frame(w, c); h, m = c['hidden_size'], c['intermediate_size']
    for i in range(c['num_hidden_layers']):
        p = f'model.layers.{i}.'
        attention(w, c, p, 'all')
        w.plain(p + 'block_sparse_moe.gate.weight', [c['num_local_experts'], h])
        w.plain(p + 'block_sparse_moe.e_score_correction_bias', [c['num_local_experts']], 'F32')
        for e in range(c['num_local_experts']):
            for n, o, k in (('w1', m, h), ('w3', m, h), ('w2', h, m)): w.linear(f'{p}block_sparse_moe.experts.{e}.{n}', o, k)
    return w.all
def gpt_oss(c, form):
    w = Weights('bf16'); frame(w, c); h, m, E = c['hidden_size'], c['intermediate_size'], c['num_local_experts']
    q, k = c['num_attention_heads'] * 64, c['num_key_value_heads'] * 64
    for i in range(c['num_hidden_layers']):
        p = f'model.layers.{i}.'
        attention(w, c, p)
        for n, s in (('q', q), ('k', k), ('v', k), ('o', h)): w.plain(f'{p}self_attn.{n}_proj.bias', [s])
        w.plain(p + 'self_attn.sinks', [c['num_attention_heads']])
        w.plain(p + 'mlp.router.weight', [E, h]); w.plain(p + 'mlp.router.bias', [E])
        for n, o, j in (('gate_up', 2 * m, h), ('down', h, m)):
            if form == 'bf16': w.plain(f'{p}mlp.experts.{n}_proj', [E, j, o])
            else:
                w.plain(f'{p}mlp.experts.{n}_proj_blocks', [E, o, j // 32, 16], 'U8')
                w.plain(f'{p}mlp.experts.{n}_proj_scales', [E, o, j // 32], 'U8')
            w.plain(f'{p}mlp.experts.{n}_proj_bias', [E, o])
    return w.all
def deepseek(c, form, root='model.', expert_form=None, head='lm_head.'):
    t = c.get('text_config', c)
    w = Weights(form); x = Weights(expert_form or form); h = t['hidden_size']
    w.plain(root + 'embed_tokens.weight', [t['vocab_size'], h]); w.plain(root + 'norm.weight', [h]); w.plain(head + 'weight', [t['vocab_size'], h])
    H, nope, rope, v = t['num_attention_heads'], t['qk_nope_head_dim'], t['qk_rope_head_dim'], t['v_head_dim']
    for i in range(t['num_hidden_layers']):
        p = f'{root}layers.{i}.'
        w.linear(p + 'self_attn.q_a_proj', t['q_lora_rank'], h); w.linear(p + 'self_attn.q_b_proj', H * (nope + rope), t['q_lora_rank'])
        w.linear(p + 'self_attn.kv_a_proj_with_mqa', t['kv_lora_rank'] + rope, h); w.linear(p + 'self_attn.kv_b_proj', H * (nope + v), t['kv_lora_rank'])
        w.linear(p + 'self_attn.o_proj', h, H * v)
        w.plain(p + 'self_attn.q_a_layernorm.weight', [t['q_lora_rank']]); w.plain(p + 'self_attn.kv_a_layernorm.weight', [t['kv_lora_rank']])
        for n in ('input', 'post_attention'): w.plain(f'{p}{n}_layernorm.weight', [h])
        def ffn(w, q, m):
            for n, o, k in (('gate', m, h), ('up', m, h), ('down', h, m)): w.linear(f'{q}{n}_proj', o, k)
        if i < t['first_k_dense_replace']: ffn(w, p + 'mlp.', t['intermediate_size']); continue
        w.plain(p + 'mlp.gate.weight', [t['n_routed_experts'], h]); w.plain(p + 'mlp.gate.e_score_correction_bias', [t['n_routed_experts']], 'F32')
        ffn(w, p + 'mlp.shared_experts.', t['moe_intermediate_size'] * t['n_shared_experts'])
        for e in range(t['n_routed_experts']): ffn(x, f'{p}mlp.experts.{e}.', t['moe_intermediate_size'])
    return w.all | x.all
def config(architecture, model_type, **sizes):
    return dict(architectures=[architecture], model_type=model_type, torch_dtype='bfloat16', hidden_act='silu', tie_word_embeddings=False, **sizes)
LLAMA = dict(rms_norm_eps=1e-5, rope_theta=5e5, max_position_embeddings=131072, vocab_size=128256, head_dim=128, num_key_value_heads=8)
MODELS = {
 'Llama-3.1-70B': (dense, config('LlamaForCausalLM', 'llama', hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64, **LLAMA)),
 'Llama-3.1-405B': (dense, config('LlamaForCausalLM', 'llama', hidden_size=16384, intermediate_size=53248, num_hidden_layers=126, num_attention_heads=128, **LLAMA)),
 'Llama-3.1-8B': (dense, config('LlamaForCausalLM', 'llama', hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, **LLAMA)),
 'Qwen3-32B': (dense, config('Qwen3ForCausalLM', 'qwen3', hidden_size=5120, intermediate_size=25600, num_hidden_layers=64, num_attention_heads=64, num_key_value_heads=8, head_dim=128, vocab_size=151936, rms_norm_eps=1e-6, rope_theta=1e6)),
 'Qwen3-235B': (qwen3_moe, config('Qwen3MoeForCausalLM', 'qwen3_moe', hidden_size=4096, intermediate_size=12288, moe_intermediate_size=1536, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], num_hidden_layers=94, num_attention_heads=64, num_key_value_heads=4, head_dim=128, vocab_size=151936, rms_norm_eps=1e-6, rope_theta=1e6)),
 'Qwen3-30B': (qwen3_moe, config('Qwen3MoeForCausalLM', 'qwen3_moe', hidden_size=2048, intermediate_size=6144, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], num_hidden_layers=48, num_attention_heads=32, num_key_value_heads=4, head_dim=128, vocab_size=151936, rms_norm_eps=1e-6, rope_theta=1e6)),
 'MiniMax-M2.5': (minimax_m2, config('MiniMaxM2ForCausalLM', 'minimax_m2', hidden_size=3072, intermediate_size=1536, num_local_experts=256, num_experts_per_tok=8, num_hidden_layers=62, num_attention_heads=48, num_key_value_heads=8, head_dim=128, rotary_dim=64, vocab_size=200064, rms_norm_eps=1e-6, rope_theta=5e6)),
 'gpt-oss-120b': (gpt_oss, config('GptOssForCausalLM', 'gpt_oss', hidden_size=2880, intermediate_size=2880, num_local_experts=128, num_experts_per_tok=4, num_hidden_layers=36, num_attention_heads=64, num_key_value_heads=8, head_dim=64, vocab_size=201088, sliding_window=128, rms_norm_eps=1e-5, rope_theta=150000, attention_bias=True, swiglu_limit=7.0)),
 'gpt-oss-20b': (gpt_oss, config('GptOssForCausalLM', 'gpt_oss', hidden_size=2880, intermediate_size=2880, num_local_experts=32, num_experts_per_tok=4, num_hidden_layers=24, num_attention_heads=64, num_key_value_heads=8, head_dim=64, vocab_size=201088, sliding_window=128, rms_norm_eps=1e-5, rope_theta=150000, attention_bias=True, swiglu_limit=7.0)),
 'DeepSeek-V3': (lambda c, f: deepseek(c, 'bf16' if f == 'nvfp4' else f, expert_form=f), config('DeepseekV3ForCausalLM', 'deepseek_v3', hidden_size=7168, intermediate_size=18432, moe_intermediate_size=2048, n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8, num_hidden_layers=61, first_k_dense_replace=3, num_attention_heads=128, num_key_value_heads=128, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, vocab_size=129280, rms_norm_eps=1e-6, rope_theta=10000.0, n_group=8, topk_group=4, norm_topk_prob=True, routed_scaling_factor=2.5, scoring_func='sigmoid', topk_method='noaux_tc')),
 'Kimi-K2.5': (lambda c, f: deepseek(c, 'bf16' if f == 'int4' else f, 'language_model.model.', f, 'language_model.lm_head.'), dict(architectures=['KimiK25ForConditionalGeneration'], model_type='kimi_k25', torch_dtype='bfloat16', text_config=dict(model_type='kimi_k2', architectures=['DeepseekV3ForCausalLM'], hidden_size=7168, intermediate_size=18432, moe_intermediate_size=2048, n_routed_experts=384, n_shared_experts=1, num_experts_per_tok=8, num_hidden_layers=61, first_k_dense_replace=1, num_attention_heads=64, num_key_value_heads=64, q_lora_rank=1536, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, vocab_size=163840, rms_norm_eps=1e-5, rope_theta=50000.0, hidden_act='silu', n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.827, scoring_func='sigmoid', topk_method='noaux_tc', tie_word_embeddings=False, torch_dtype='bfloat16'))),
}
MODELS['DeepSeek-R1'] = MODELS['DeepSeek-V3']
def write_model(name, form, folder):
    build, c = MODELS[name]
    c = json.loads(json.dumps(c))
    if QUANT[form]: c['quantization_config'] = QUANT[form]
    write(folder, build(c, form), c)
