"""The operators of publish/subscribe: access points, matchers, exit points; functions on rows."""
