# A launch of Megatron-LM with invented sizes: a llama of 8 billion parameters on 64 GPUs.
#   plumbline import megatron examples/launch/pretrain.sh -o run.yaml
GPUS_PER_NODE=8
NODES=${SLURM_NNODES:-8}

MODEL=(
  --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
  --group-query-attention --num-query-groups 8 --kv-channels 128
  --swiglu --normalization RMSNorm --position-embedding-type rope --rotary-base 500000
  --disable-bias-linear --untie-embeddings-and-output-weights
  --attention-dropout 0.0 --hidden-dropout 0.0
  --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256
)
TRAINING=(
  --micro-batch-size 1 --global-batch-size 256 --train-samples 1831054 --bf16
  --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --weight-decay 0.1 --clip-grad 1.0
  --recompute-granularity selective --recompute-modules core_attn layernorm
)
LAYOUT=(
  --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 4
  --num-virtual-stages-per-pipeline-rank 2
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
)
torchrun --nproc-per-node $GPUS_PER_NODE --nnodes $NODES pretrain_gpt.py \
  ${MODEL[@]} ${TRAINING[@]} ${LAYOUT[@]} --save "$CHECKPOINTS" --ddp-pad-buckets-for-high-nccl-busbw
