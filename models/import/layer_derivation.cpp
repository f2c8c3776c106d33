// The sums over the terms of a layer.
//
// SPDX-License-Identifier: MIT
#include "models/import/layer_derivation.h"

namespace plumbline {

LayerDerivation joined(LayerDerivation first, const LayerDerivation& second) {
  first.role = second.role == "moe" ? "moe_block" : "block";
  first.parameters.insert(first.parameters.end(), second.parameters.begin(),
                          second.parameters.end());
  first.flops.insert(first.flops.end(), second.flops.begin(), second.flops.end());
  first.kept.insert(first.kept.end(), second.kept.begin(), second.kept.end());
  first.recompute_flops += second.recompute_flops;
  first.recompute_fp8_flops += second.recompute_fp8_flops;
  first.again_reads += second.again_reads;
  first.again_all_reduced += second.again_all_reduced;
  first.again_gathered += second.again_gathered;
  first.again_exchanged += second.again_exchanged;
  first.again_expert_gathered += second.again_expert_gathered;
  first.again_keys_and_values += second.again_keys_and_values;
  first.again_exchanged_heads += second.again_exchanged_heads;
  first.dropped += second.dropped;
  first.idle_parameters += second.idle_parameters;
  first.borrowed += second.borrowed;
  first.output = second.output;
  first.forward_traffic += second.forward_traffic;
  first.input_traffic += second.input_traffic;
  first.weight_traffic += second.weight_traffic;
  first.all_reduced += second.all_reduced;
  first.input_all_reduced += second.input_all_reduced;
  first.gathered += second.gathered;
  first.input_gathered += second.input_gathered;
  first.exchanged += second.exchanged;
  first.expert_gathered += second.expert_gathered;
  if (second.keys_and_values.value.value() > 0) first.keys_and_values = second.keys_and_values;
  if (second.exchanged_heads.value.value() > 0) first.exchanged_heads = second.exchanged_heads;
  return first;
}

SaturatingCount sum(const std::vector<Term>& terms) {
  SaturatingCount total;
  for (const Term& term : terms) total += term.value;
  return total;
}

SaturatingCount recomputation(const std::vector<Term>& kept) {
  SaturatingCount total;
  for (const Term& term : kept) total += term.again;
  return total;
}

SaturatingCount forward_flops(const LayerDerivation& layer) {
  SaturatingCount total;
  for (const WorkTerm& term : layer.flops) total += term.forward.value;
  return total;
}

SaturatingCount input_flops(const LayerDerivation& layer) {
  SaturatingCount halves;
  for (const WorkTerm& term : layer.flops) halves += term.input_halves * term.forward.value;
  // Every term is even: a multiplication and an addition.
  return halves.is_exact() ? SaturatingCount{halves.value() / 2} : halves;
}

SaturatingCount weight_flops(const LayerDerivation& layer) {
  SaturatingCount total;
  for (const WorkTerm& term : layer.flops) {
    if (term.has_weights) total += term.forward.value;
  }
  return total;
}

SaturatingCount fp8_flops(const LayerDerivation& layer) {
  SaturatingCount total;
  for (const WorkTerm& term : layer.flops) {
    if (term.in_fp8) total += term.forward.value;
  }
  return total;
}

}  // namespace plumbline
