// Puts the lesson's modules and those of the report that they use, the styles and the examples into one page.
// Usage: node pack.mjs REPOSITORY OUTPUT_FOLDER
// SPDX-License-Identifier: MIT
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {dirname, join, relative, resolve} from 'node:path';

const [repository, output] = process.argv.slice(2);
const at = (path) => join(repository, path);
const textOf = (path) => readFileSync(at(path), 'utf8');

/** The imports of a module: whole statements at the start of a line. */
const IMPORT = /^import [^;]*? from '([^']+)';\n/gm;

/** The modules that `path` needs, each behind those that it imports. */
function modulesOf(path, found = []) {
  for (const [, name] of textOf(path).matchAll(IMPORT)) {
    const wanted = relative(repository, resolve(at(dirname(path)), name));
    if (!found.includes(wanted)) modulesOf(wanted, found);
  }
  if (!found.includes(path)) found.push(path);
  return found;
}

/** Comments that fill lines of their own. */
const COMMENT = /^\s*(\/\/.*|\/\*[^]*?\*\/)\n/gm;

/** The text of a module as part of one program. */
const plain = (path) => textOf(path).replace(IMPORT, '').replace(/^export /gm, '').replace(COMMENT, '');

/** The examples that pages begin with, by their paths, and the files that those name. */
async function examples() {
  const {PAGES, filesOfPages} = await import(resolve(at('lesson/page_list.js')));
  return Object.fromEntries(filesOfPages(PAGES).map((path) => [path, textOf(path)]));
}

const script = modulesOf('lesson/main.js').map(plain).join('\n').replaceAll('</script', '<\\/script');
const files = JSON.stringify(await examples()).replaceAll('<', '\\u003c');
const style = ['sim/report/page/palette.css', 'sim/report/page/page.css', 'lesson/lesson.css'].map(textOf).join('\n');
const page = textOf('lesson/shell.html')
                 .replace('/*STYLE*/', () => style)
                 .replace('/*SCRIPT*/', () => `globalThis.lessonFiles = ${files};\n${script}`);
mkdirSync(output, {recursive: true});
writeFileSync(join(output, 'index.html'), page);
