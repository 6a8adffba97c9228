"""What is generated: shapes, dtypes, masks, layouts, values, cotangents, whole calls."""
