import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, matchesGlob, posix } from 'node:path';
import type { ImportRules, ImportRule as Rule } from '../../scripts/import-rules.mjs';
import { scanImports } from './scan-imports.ts';

interface Edge {
  from: string;
  line: number;
  to: string;
}

/**
 * Reads every TypeScript file of the rooms and checks its imports against the rules.
 *
 * @returns the files it read, and one sentence per violation
 */
export function checkArchitecture(root: string, architecture: ImportRules): { files: string[]; violations: string[] } {
  const files = architecture.rooms.flatMap((room) => filesOf(root, room));
  const aliases = readAliases(root);
  const violations: string[] = [];
  const edges: Edge[] = [];
  for (const file of files) {
    const { imports, reExportLines } = scan(root, file);
    for (const line of reExportLines) violations.push(`${file}:${line} passes another file's names on: import the file that owns a name`);
    for (const { specifier, line } of imports) {
      const refuse = (why: string) => violations.push(`${file}:${line} ${why}`);
      if (specifier === null) {
        refuse('has a computed import, which cannot be checked');
      } else if (!/^[.#/]/.test(specifier)) {
        checkPackage({ file, specifier, rules: architecture.rules, refuse });
      } else {
        const to = resolve(file, specifier, aliases);
        if (to === null || !existsSync(join(root, to))) refuse(`imports '${specifier}', which is no file`);
        else edges.push({ from: file, line, to });
        if (to !== null) checkBorder({ file, specifier, to, architecture, refuse });
      }
    }
  }
  return { files, violations: [...violations, ...cyclesIn(edges)] };
}

type Refuse = (why: string) => void;

function checkPackage({ file, specifier, rules, refuse }: { file: string; specifier: string; rules: readonly Rule[]; refuse: Refuse }): void {
  const rule = ruleFor(file, rules)?.rule;
  const name = /^(?:node:.*|@[^/]+\/[^/]+|[^/]+)/.exec(specifier)?.[0] ?? specifier;
  if (rule?.packages === undefined || isTest(file) || rule.packages.includes(name)) return;
  refuse(`may not import the package ${name}: ${rule.because}`);
}

interface BorderCheck {
  file: string;
  specifier: string;
  to: string;
  architecture: ImportRules;
  refuse: Refuse;
}

function checkBorder({ file, specifier, to, architecture, refuse }: BorderCheck): void {
  // The scripts that start servers for tests lie in no room, and no alias leads to them.
  if (isTest(file) && to.startsWith('scripts/')) return;
  const isOwnRoom = roomOf(file) === roomOf(to);
  if (specifier.startsWith('.') && !isOwnRoom) refuse(`leaves its room by the relative path '${specifier}': a border crossing begins with #`);
  if (specifier.startsWith('#') && isOwnRoom) refuse(`names its own room by '${specifier}': inside a room paths are relative`);

  const { drivers, rules } = architecture;
  const isDriver = drivers.folders.some((folder) => to.startsWith(folder));
  const ownFolder = drivers.folders.find((folder) => file.startsWith(folder));
  if (isDriver && ownFolder === undefined && !drivers.openedBy.some((files) => matchesGlob(file, files))) refuse(`may not import ${to}: ${drivers.because}`);

  const found = ruleFor(file, rules);
  if (found === null) {
    refuse('lies in no room that the rules know');
    return;
  }
  // A test may open drivers to run its subject on them; otherwise its room's rule applies.
  if (isDriver && isTest(file)) return;
  const { rule, name } = found;
  const fits = (prefixes: readonly string[] = []) => prefixes.some((prefix) => to.startsWith(prefix.replace('*', name)));
  const mayImport = isTest(file) ? [...rule.mayImport, ...(rule.testsMayImport ?? [])] : rule.mayImport;
  if (!fits(mayImport) || fits(rule.never)) refuse(`may not import ${to}: ${rule.because}`);
}

/** @returns the first matching rule, and the value of its `*` */
function ruleFor(file: string, rules: readonly Rule[]): { rule: Rule; name: string } | null {
  for (const rule of rules) {
    const [before = '', after] = rule.files.split('*');
    if (!file.startsWith(before)) continue;
    if (after === undefined) return { rule, name: '' };
    const name = file.slice(before.length).split('/')[0] ?? '';
    if (file.startsWith(before + name + after)) return { rule, name };
  }
  return null;
}

/** A room is `shared`, `bus`, `actors` or one service. */
function roomOf(path: string): string {
  const [first = '', second = ''] = path.split('/');
  return first === 'services' ? `${first}/${second}` : first;
}

function isTest(file: string): boolean {
  return file.endsWith('.test.ts');
}

function scan(root: string, file: string) {
  try {
    return scanImports(readFileSync(join(root, file), 'utf8'));
  } catch (cause) {
    throw new Error(`${file} can't be read`, { cause });
  }
}

function filesOf(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesOf(root, path);
      return /\.tsx?$/.test(path) ? [path] : [];
    });
}

/** `#room/` → `room/`, out of the same table that Node and the compiler read. */
function readAliases(root: string): Map<string, string> {
  const { imports }: { imports: Record<string, { types: string }> } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return new Map(Object.entries(imports).map(([pattern, { types }]) => [pattern.split('*')[0] ?? '', posix.normalize(types.split('*')[0] ?? '')]));
}

/** @returns the path from the root, or null for an alias that does not exist or a path out of the root */
function resolve(file: string, specifier: string, aliases: Map<string, string>): string | null {
  if (specifier.startsWith('.')) {
    const path = posix.join(dirname(file), specifier);
    return path.startsWith('..') ? null : path;
  }
  for (const [alias, folder] of aliases) {
    if (specifier.startsWith(alias) && specifier.endsWith('.ts')) return folder + specifier.slice(alias.length);
  }
  return null;
}

/** One sentence per cycle, type imports included: depth first, and every edge back to a file still open closes one. */
function cyclesIn(edges: readonly Edge[]): string[] {
  const targets = new Map<string, Set<string>>();
  for (const { from, to } of edges) targets.set(from, (targets.get(from) ?? new Set()).add(to));
  const cycles: string[] = [];
  const done = new Set<string>();
  const open: string[] = [];
  const visit = (file: string): void => {
    const since = open.indexOf(file);
    if (since >= 0) {
      cycles.push(`import cycle: ${[...open.slice(since), file].join(' → ')}`);
      return;
    }
    if (done.has(file)) return;
    open.push(file);
    for (const next of targets.get(file) ?? []) visit(next);
    open.pop();
    done.add(file);
  };
  for (const file of targets.keys()) visit(file);
  return cycles;
}
