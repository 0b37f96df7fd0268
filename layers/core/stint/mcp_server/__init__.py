"""An MCP server whose tools are agents. No other API imports this folder."""
