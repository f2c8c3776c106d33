# Every relative link in a page leads to a file that is there, and every #anchor to a heading of its page.
# SPDX-License-Identifier: MIT
"""Usage: python3 tests/links.py          looks at all *.md that git knows; ends with 1 if a link leads nowhere."""
import functools
import os
import re
import subprocess
import sys

LINK = re.compile(r'\[(?:[^][]|\[[^][]*\])*\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)')
EMBEDDED = re.compile(r'(?:src|href)="([^"]*)"')
HEADING = re.compile(r'#{1,6} +(.*?) *#*$')
ELSEWHERE = re.compile(r'[a-z][a-z0-9+.-]*:')


def without_code(text):
    """The lines of a page; those of code blocks are empty."""
    lines, fence = [], None
    for line in text.split('\n'):
        mark = re.match(r' *(```+|~~~+)', line)
        if fence is None and mark:
            fence = mark[1]
            lines.append('')
        elif fence is not None:
            if mark and mark[1].startswith(fence) and line.strip() == mark[1]:
                fence = None
            lines.append('')
        else:
            lines.append(line)
    return lines


def slug(heading):
    """The anchor of a heading, as GitHub makes it and as mkdocs.yml asks for."""
    text = re.sub(r'!?\[([^]]*)\]\([^)]*\)', r'\1', heading).lower()
    return re.sub(r'[^\w\- ]', '', text).replace(' ', '-')


@functools.lru_cache(maxsize=None)
def anchors(path):
    found = set()
    with open(path, encoding='utf-8') as file:
        for line in without_code(file.read()):
            heading = HEADING.match(line)
            if heading:
                name, count = slug(heading[1]), 0
                while name + ('-%d' % count if count else '') in found:
                    count += 1
                found.add(name + ('-%d' % count if count else ''))
            found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def wrong(page, target):
    """What is wrong with a link of this page, or None."""
    path, _, anchor = target.partition('#')
    if ELSEWHERE.match(target):
        return None
    to = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if to.startswith('..'):
        return 'leads out of the repository'
    if not os.path.exists(to):
        return 'there is no ' + to
    if anchor and to.endswith('.md') and anchor not in anchors(to):
        return '%s has no heading #%s' % (to, anchor)
    return None


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '*.md'], capture_output=True, text=True, check=True)
    links = failed = 0
    for page in sorted(filter(os.path.exists, listed.stdout.split('\n'))):
        with open(page, encoding='utf-8') as file:
            lines = without_code(file.read())
        # A link may go on in the next line, so the page is read as one text.
        text = '\n'.join(re.sub(r'(`+)(?!`).*?(?<!`)\1(?!`)', lambda code: code[0].replace('](', '] ('), line) for line in lines)
        for match in sorted([*LINK.finditer(text), *EMBEDDED.finditer(text)], key=lambda one: one.start()):
            links += 1
            problem = wrong(page, match[1])
            if problem:
                failed += 1
                print('FAILED: %s:%d: %s: %s' % (page, text.count('\n', 0, match.start()) + 1, match[1], problem))
    print('%d passed, %d failed' % (links - failed, failed))
    return 1 if failed or not links else 0


if __name__ == '__main__':
    sys.exit(main())
