"""The publish/subscribe service over HTTP: tokens, subscriptions, publications, notifications."""
