"""Policy, guarantees and backends: policy to plan, pure."""
