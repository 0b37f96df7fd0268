"""The routes of MCP."""

from fastapi import APIRouter

from stint.http.requests import StrictRoute

router = APIRouter(tags=["MCP"], route_class=StrictRoute)
