from infra.scripts import check_prose


def test_a_markdown_line_is_measured_without_its_urls() -> None:
    files = {"a.md": f"{'x' * 110}\n{'x' * 111}\nhttps://{'x' * 120}\n", "a.py": f"# {'x' * 120}"}

    assert list(check_prose.long_markdown_lines(files)) == ["a.md:2: 111 characters, at most 110. Break the line."]


def test_file_names_separate_their_words() -> None:
    files = dict.fromkeys(["a/item_history.py", "a/responselogs.py", "eventstream.py", "toolgroups.py"], "")

    [problem] = check_prose.joined_file_names(files)

    assert problem.startswith("a/responselogs.py: ")


def test_docstrings_begin_with_a_standard_verb() -> None:
    texts = ["Tells a, b.", "What is there.", "Given names.", "Of a turn.", "Said.", "Return a tool.", "Offer it."]
    files = {f"{number}.py": f'def f():\n    """{text}"""\n' for number, text in enumerate(texts)}

    found = [problem.split(":")[0] for problem in check_prose.docstring_openings(files)]

    assert found == ["0.py", "1.py", "2.py", "3.py", "4.py"]


def test_only_a_wire_class_may_share_its_name() -> None:
    core = "layers/core/stint"
    files = {
        f"{core}/schema.py": "class Schema: ...\nclass Page(Schema): ...",
        f"{core}/wire.py": "class Turn(Page[int]): ...\nclass Log: ...",
        f"{core}/turns.py": "class Turn: ...",
        f"{core}/logs.py": "class Log: ...",
        "infra/log.py": "class Log: ...",
    }

    assert list(check_prose.duplicate_classes(files)) == [
        f"{core}/logs.py:1: class Log is also defined at {core}/wire.py:2. Rename one."
    ]
