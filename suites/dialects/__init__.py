"""The sentences that single implementations document about their own interfaces."""
