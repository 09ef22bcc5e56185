"""From schema definitions to what Spark reads them with: types, and the text of a package."""
