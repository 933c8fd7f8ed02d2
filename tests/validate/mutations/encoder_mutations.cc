#include <numeric>

#include "tests/validate/mutations/mutations.h"

/// Faults of an encoder, and of a decoder's attention to it.
namespace shardtool::test {
namespace {

const std::string kEncoder = "encoder.block.";
const std::string kDecoder = "decoder.block.";

/// Stores one tensor's parts under the name of another, on every rank that has both.
std::function<void(const ShardSet&)> instead_of(const std::string& tensor,
                                                const std::string& other) {
  return [tensor, other](const ShardSet& shards) {
    for (const i64 rank : shards.ranks_of(tensor)) {
      shards.write(tensor, rank, shards.read(other, rank));
    }
  };
}

}  // namespace

std::vector<Mutation> encoder_mutations() {
  const std::string biases = "0.layer.0.SelfAttention.relative_attention_bias.weight";
  const std::string keys = ".layer.1.EncDecAttention.k.weight";
  return {
      over_mesh(
          "E1", "biases of two heads exchanged", "t5", "tp=2",
          {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight: rank 0 head 0 "
           "holds head 1, head 1 holds head 0"},
          [=](const ShardSet& shards) {
            shards.change(kEncoder + biases, 0, [](const ShardRows& rows) {
              return rows.columns_in({1, 0});
            });
          }),
      over_mesh(
          "E2", "the decoder's biases are the encoder's", "t5_gated", "tp=4",
          {"in decoder 0, position bias",
           "relative_attention_bias.weight: rank 0 decoder holds encoder; rank 1 decoder holds "
           "encoder"},
          instead_of(kDecoder + biases, kEncoder + biases)),
      over_mesh(
          "E3", "keys of another layer's attention to the encoder", "t5", "tp=2",
          {"decoder.block.1.layer.1.EncDecAttention.k.weight: rank 0 holds layer 0's instead of "
           "layer 1's"},
          instead_of(kDecoder + "1" + keys, kDecoder + "0" + keys)),
      over_mesh(
          "E4", "an attention to the encoder has the decoder's own keys", "umt5", "pp=2,tp=2",
          {"k.weight: rank 2 1.EncDecAttention holds 0.SelfAttention; rank 3 1.EncDecAttention "
           "holds 0.SelfAttention"},
          instead_of(kDecoder + "1" + keys, kDecoder + "1.layer.0.SelfAttention.k.weight")),
      over_mesh(
          "E5", "the encoder ends with the decoder's norm", "t5_gated", "tp=2",
          {"in decoder start, norm 'encoded': encoder.final_layer_norm.weight: rank 0 encoder "
           "holds decoder"},
          instead_of("encoder.final_layer_norm.weight", "decoder.final_layer_norm.weight")),
      over_mesh("E6", "gate and up exchanged", "t5_encoder", "tp=2",
                {"wi_0.weight: rank 0 wi_0 holds wi_1; rank 1 wi_0 holds wi_1"},
                [](const ShardSet& shards) {
                  const std::string mlp = kEncoder + "1.layer.1.DenseReluDense.";
                  for (i64 rank = 0; rank < 2; ++rank) {
                    shards.exchange(mlp + "wi_0.weight", mlp + "wi_1.weight", rank);
                  }
                }),
      over_mesh("E7", "taps of a convolution of sound reversed", "whisper", "tp=2",
                {"in encoder start, convolve frames 'near': model.encoder.conv1.weight: rank 0 "},
                [](const ShardSet& shards) {
                  shards.change_all("model.encoder.conv1.weight", [](const ShardRows& rows) {
                    return rows.columns_in({2, 1, 0});
                  });
                }),
      over_mesh("E8", "queries and keys of attention to the encoder exchanged", "whisper",
                "pp=2,tp=2", {"encoder_attn.q_proj.weight: rank 0 q_proj holds k_proj"},
                [](const ShardSet& shards) {
                  const std::string attention = "model.decoder.layers.0.encoder_attn.";
                  for (const i64 rank : shards.ranks_of(attention + "q_proj.weight")) {
                    shards.exchange(attention + "q_proj.weight", attention + "k_proj.weight", rank);
                  }
                }),
      over_mesh("E9", "keys of attention to the encoder are the decoder's own", "bart", "tp=2",
                {"layers.2.encoder_attn.k_proj.weight: rank 0 "},
                instead_of("model.decoder.layers.2.encoder_attn.k_proj.weight",
                           "model.decoder.layers.2.self_attn.k_proj.weight")),
      over_mesh("E10", "the decoder's words have the encoder's norm", "bart", "pp=2,tp=2",
                {"decoder.layernorm_embedding.weight: rank 0 decoder holds encoder"},
                instead_of("model.decoder.layernorm_embedding.weight",
                           "model.encoder.layernorm_embedding.weight")),
      over_mesh("E11", "biases of the words' scores exchanged", "mbart", "tp=2",
                {"final_logits_bias: rank 0 holds the shard of rank 1"},
                [](const ShardSet& shards) { shards.exchange("final_logits_bias", 0, 1); }),
      over_mesh("E12", "norms before attention and MLP exchanged", "modernbert", "tp=2",
                {"attn_norm.weight: rank 0 attn_norm holds mlp_norm"},
                [](const ShardSet& shards) {
                  const std::string layer = "model.layers.1.";
                  shards.exchange(layer + "attn_norm.weight", layer + "mlp_norm.weight", 0);
                }),
      over_mesh("E13", "queries, keys and values of a layer without a window", "modernbert", "tp=2",
                {"attn.Wqkv.weight: rank 0 holds layer 2's instead of layer 1's"},
                instead_of("model.layers.1.attn.Wqkv.weight", "model.layers.2.attn.Wqkv.weight")),
      over_mesh("E14", "features of an MLP of two ranks exchanged", "distilbert", "tp=2",
                {"ffn.lin1.weight: rank 0 holds the shard of rank 1"},
                [](const ShardSet& shards) {
                  shards.exchange("distilbert.transformer.layer.0.ffn.lin1.weight", 0, 1);
                }),
      over_mesh("E15", "words are projected by columns in another order", "electra", "tp=2",
                {"embeddings_project.weight: rank 1 "},
                [](const ShardSet& shards) {
                  shards.change("electra.embeddings_project.weight", 1, [](const ShardRows& rows) {
                    std::vector<i64> columns(static_cast<size_t>(rows.columns));
                    std::iota(columns.rbegin(), columns.rend(), 0);
                    return rows.columns_in(columns);
                  });
                }),
      over_mesh(
          "E19", "the keys of distances have the norm of the words", "deberta_v2", "tp=2",
          {"in encoder 0, bucket scores 'of_queries': deberta.encoder.LayerNorm.weight: rank 1 "},
          [](const ShardSet& shards) {
            shards.write("deberta.encoder.LayerNorm.weight", 1,
                         shards.read("deberta.embeddings.LayerNorm.weight", 1));
          }),
      over_mesh("E20", "two distances exchanged", "deberta_v2", "tp=2",
                {"deberta.encoder.rel_embeddings.weight: rank 0 "},
                [](const ShardSet& shards) {
                  shards.change("deberta.encoder.rel_embeddings.weight", 0,
                                [](const ShardRows& rows) {
                                  std::vector<i64> order(static_cast<size_t>(rows.rows));
                                  std::iota(order.begin(), order.end(), 0);
                                  std::swap(order[7], order[8]);
                                  return rows.rows_in(order);
                                });
                }),
      over_mesh("E21", "queries of distances are their keys", "deberta_v2_places", "tp=2",
                {"pos_query_proj.weight: rank 0 "},
                instead_of("deberta.encoder.layer.1.attention.self.pos_query_proj.weight",
                           "deberta.encoder.layer.1.attention.self.pos_key_proj.weight")),
      over_mesh("E16", "the decoder's words are those of the encoder", "marian_two", "tp=2",
                {"decoder.embed_tokens.weight: rank 0 "},
                [](const ShardSet& shards) {
                  shards.exchange("model.decoder.embed_tokens.weight", 0, 1);
                }),
      over_mesh("E17", "an encoder ends with the decoder's norm", "m2m_100", "pp=2,tp=2",
                {"norm 'encoded': model.encoder.layer_norm.weight: rank 0 encoder holds decoder"},
                instead_of("model.encoder.layer_norm.weight", "model.decoder.layer_norm.weight")),
      over_mesh("E18", "places of the decoder are those of the encoder", "pegasus", "tp=2",
                {"decoder.embed_positions.weight: rank 0 decoder holds encoder"},
                instead_of("model.decoder.embed_positions.weight",
                           "model.encoder.embed_positions.weight")),
  };
}

}  // namespace shardtool::test
