"""Graphlane shown and measured."""
