"""Remove one protection of access at a time: `make test-mutations`."""

import sys

from tests.mutations import CORE, Mutation, run_mutations

MUTATIONS = [
    Mutation(
        "a request without a principal is 401",
        f"{CORE}/http/middleware/authentication.py",
        "        raise Unauthenticated(UNAUTHENTICATED) from None",
        "        return ANONYMOUS",
        "tests/security/test_forged_callers.py -k gateway",
    ),
    Mutation(
        "each route needs its scope",
        f"{CORE}/http/scopes.py",
        "    require_scope(needed)\n",
        "",
        "tests/security/test_route_walk.py -k scope",
    ),
    Mutation(
        "the tenant leads the keys of records",
        f"{CORE}/store/keys.py",
        'return f"{checked_tenant(tenant)}#',
        'return f"shared#',
        "tests/security/test_rights.py -k another_tenant",
    ),
    Mutation(
        "credentials are masked in answers",
        f"{CORE}/tools/masking.py",
        "    return Masker().value(value)",
        "    return value",
        "tests/security/test_marked_secrets.py",
    ),
    Mutation(
        "the secret of a key is compared",
        f"{CORE}/domain/api_keys.py",
        "current = hmac.compare_digest(sent, self.secret_hash)",
        "current = True",
        "tests/security/test_route_walk.py -k secret",
    ),
    Mutation(
        "a key expires",
        f"{CORE}/domain/api_keys.py",
        "(expires_at is None or now < expires_at)",
        "True",
        "tests/security/test_route_walk.py -k expired",
    ),
    Mutation(
        "a key can be revoked",
        f"{CORE}/domain/api_keys.py",
        "return self.resource.revoked_at is None and",
        "return",
        "tests/security/test_route_walk.py -k revoked",
    ),
    Mutation(
        "only the tool of its provider has an alias",
        f"{CORE}/loop/toolbox.py",
        "return {alias: name for alias",
        'return {"web_search": "brave_search"} | {alias: name for alias',
        "tests/api/test_tool_aliases.py -k no_other_name",
    ),
    Mutation(
        "a model sets declared arguments only",
        f"{CORE}/loop/toolbox.py",
        "declared = {name: value for name, value in given.items() if name not in undeclared}",
        "declared = dict(given)",
        "tests/api/test_tool_arguments.py -k chooses_the_query",
    ),
    Mutation(
        "arguments do not replace fields of a definition",
        f"{CORE}/tools/http/request.py",
        " and field_of(name) not in fields",
        "",
        "tests/api/test_tool_arguments.py -k operator_wrote",
    ),
    Mutation(
        "callers' headers do not replace those of a definition",
        f"{CORE}/tools/http/provider.py",
        "        refuse_replacement(tool, callers)\n",
        "",
        "tests/api/test_tool_arguments.py -k operator_wrote",
    ),
    Mutation(
        "calls that the tool choice forbids do not run",
        f"{CORE}/loop/agent_loop.py",
        "answer.refused = run.find_refused(answer.calls)",
        "answer.refused = set()",
        "tests/api/test_tool_choices.py -k none",
    ),
    Mutation(
        "URLs do not lead inside",
        f"{CORE}/net/guard.py",
        "        if kind and not self._allowed.admits(",
        "        if kind and False and not self._allowed.admits(",
        "tests/security/test_url_tricks.py -k turn_document",
    ),
    Mutation(
        "redirects do not lead inside",
        f"{CORE}/net/transport.py",
        "        for address in await self._find(host, port):",
        "        for address in [host]:",
        "tests/security/test_url_tricks.py -k redirect",
    ),
    Mutation(
        "the policy is for the whole stage, because it is cached",
        "functions/authorizer/app.py",
        'return policy("Allow", stage,',
        'return policy("Allow", event["methodArn"],',
        "tests/security/test_route_walk.py -k scope",
    ),
    Mutation(
        "a key is limited to its models",
        f"{CORE}/domain/principals.py",
        "return matches_model(self.models, model_id)",
        "return True",
        "tests/security/test_rights.py -k model",
    ),
    Mutation(
        "an admin manages keys of its own tenant",
        f"{CORE}/services/access/key_administration.py",
        "return None if self.is_operator(caller) else caller.tenant",
        "return None",
        "tests/security/test_rights.py -k admin_manages",
    ),
    Mutation(
        "a key has no more rights than its creator",
        f"{CORE}/services/access/key_administration.py",
        "        if not self.is_operator(caller):\n            refuse_excess",
        "        if False:\n            refuse_excess",
        "tests/security/test_rights.py -k more_rights",
    ),
    Mutation(
        "a role's name stands for the own account",
        f"{CORE}/services/access/iam_roles.py",
        'if role is None and account == context.get("accountId"):',
        "if role is None:",
        "tests/security/test_iam_callers.py -k opens_nothing",
    ),
    Mutation(
        "an issuer names no keys on this machine",
        f"{CORE}/oidc/key_set.py",
        "return is_secure(url) and (is_https(url) or not is_https(self._issuer))",
        "return is_secure(url)",
        "tests/security/test_url_tricks.py -k keys_of_an_issuer",
    ),
    Mutation(
        "only whole paths are open",
        f"{CORE}/http/middleware/authentication.py",
        "in OPEN_PATHS",
        'in OPEN_PATHS or "/v1/health" in scope["path"]',
        "tests/security/test_forged_callers.py -k open_one",
    ),
    Mutation(
        "a token is for this audience",
        f"{CORE}/oidc/tokens.py",
        "if self._rules.audience not in (audience if isinstance(audience, list) else [audience]):",
        "if False:",
        "tests/unit/oidc/test_tokens.py -k claims_of_another",
    ),
    Mutation(
        "a token has an algorithm of the settings",
        f"{CORE}/oidc/tokens.py",
        "or algorithm not in self._rules.algorithms:",
        "or False:",
        "tests/unit/oidc/test_tokens.py -k edwards",
    ),
    Mutation(
        "budgets are reserved before a model is called",
        f"{CORE}/models/metered.py",
        "self.reservation = await self.meter.spending.admit_call(tokens, dollars)",
        "pass",
        "tests/services/turns/test_turn_budgets.py -k before_the_model_call",
    ),
    Mutation(
        "a data role reaches the records of its tenant",
        "infra/aws/isolation.yaml",
        'dynamodb:LeadingKeys: "${aws:PrincipalTag/tenant}#*"',
        'dynamodb:LeadingKeys: "*"',
        "tests/api/isolation/test_data_role.py -k no_call_of_a_run",
    ),
]


if __name__ == "__main__":
    sys.exit(run_mutations(MUTATIONS, sys.argv[1:]))
