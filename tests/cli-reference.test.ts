import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { exitCodes } from '../services/operator/failures.ts';
import { switchyardProgram } from '../services/operator/service.ts';
import { scanImports } from './helpers/scan-imports.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const notUsed = () => expect.fail('help needs nothing');
const program = switchyardProgram({
  openDatabase: notUsed,
  openBus: notUsed,
  openTags: notUsed,
  upgradeStreams: notUsed,
  inspectStreams: notUsed,
  pingCache: notUsed,
  openLog: notUsed,
  environment: {},
  print: notUsed,
  write: notUsed,
  writeError: notUsed,
  progress: notUsed,
  readLines: notUsed,
  columns: null,
  clock: { nowMs: notUsed },
});
const HEAD = `# Command line

\`switchyard\` is the program of the package: \`npx switchyard …\` where the package is installed, or in a clone \`npm run -s operator -- …\` and \`node scripts/switchyard.mjs …\`. This page is made from the help texts.

**Settings** are environment variables ([settings.md](settings.md)); \`--help\` of \`start\` lists those of \`npm start\`. Commands of stores read \`DATABASE_URL\`, \`NATS_URL\`, \`NATS_PASSWORD\` (of the user \`operator\`), \`REDIS_URL\` and \`HOUSE_SECRET\`, as far as they need them. Without \`DATABASE_URL\` they use the database and the broker of \`start\` in \`DATA_DIR\` (default: \`data\`), which must be stopped meanwhile. A file \`.env\` in the current folder is read too; the environment overrules it.

**Servers and keys.** \`chat\`, \`events\`, \`trigger\`, \`runs\`, \`keys\` and \`documents\` talk to a running server: that of \`--url\`, else of \`SWITCHYARD_AGENT_URL\` or \`SWITCHYARD_ROUTER_URL\`, else the one that \`start\` runs on \`DATA_DIR\` (default: \`data\`). The key is that of \`AGENT_API_KEY\` or \`ROUTER_MANAGEMENT_KEY\`, of the file of \`--key-file\` (one line, or fields like those of keys.json), or of keys.json in \`DATA_DIR\`. \`documents\` needs the keys of the router's platform, \`PLATFORM_PUBLIC_KEY\` and \`PLATFORM_SECRET_KEY\`. No key is an argument, since all users of a machine see those.

**Without a clone**: \`npm pack\` in a clone makes a file, and \`npx <file>.tgz start\` runs it in any folder, which then has the data, in \`data/\` (the path has to be relative: npx takes an absolute one for a program); \`cluster\` runs there, too, on the nats-server, PostgreSQL and Redis of the machine; \`npm install <file>.tgz\` makes it \`npx switchyard …\` there ([ADR 104](adr/0104-a-package-has-its-build.md)).

**\`--json\`** prints results as JSON to stdout, lines of JSON where they do not end, and errors as one line to stderr: \`{"error":{"code":"…","message":"…","fix":"…"}}\`. The codes are those of [errors.md](errors.md), of the agent server's answers, or begin with \`client.\`. \`fix\` says what to do next; it is null where the message says it.

| Exit code | When |
|---|---|
| 0 | done |
| 1 | failed, or found what it looks for: an invalid configuration, a failed scenario, a failed check of \`doctor\` |
| 2 | the command line is wrong |
| 3 | a server or a store can not be reached, or is not ready: repeating may help |
| 4 | a key is missing, wrong, or may not do this |
| 130, 143 | ended by Ctrl-C, by SIGTERM |

**Progress** of slow commands is one line on a terminal, which the result replaces; a pipe and \`--json\` get none.

**Versions.** A command works against servers of other releases as far as their APIs agree. Where a request fails and \`GET /\` of the server names another version of the API than this program was made for, the next step of the error says both. A wrong key is said first: without a valid one an agent server does not answer with its version.

**Tables** on a terminal that is too narrow for them are printed as a line per cell, \`HASH: …\`, with an empty line between rows; a pipe always gets a line per row.

**Completion**: \`source <(switchyard completion bash)\`, or \`zsh\`, in the shell's start file.
`;
/** Commands that are scripts have a help of their own. */
const SCRIPTS = ['start', 'cluster', 'ask'];

function commandsBelow(command: Command, names: readonly string[]): { name: string; command: Command }[] {
  return command.commands
    .filter((one) => !SCRIPTS.includes(one.name()) && one.name() !== 'help')
    .flatMap((one) => [{ name: [...names, one.name()].join(' '), command: one }, ...commandsBelow(one, [...names, one.name()])]);
}

function reference(): string {
  const sections = [{ name: '', command: program }, ...commandsBelow(program, [])].map(({ name, command }) => {
    const help = command.configureHelp({ helpWidth: 100 }).helpInformation().trimEnd();
    return `## ${name === '' ? 'switchyard' : `switchyard ${name}`}\n\n\`\`\`\n${help}\n\`\`\`\n`;
  });
  return `${HEAD}\n${sections.join('\n')}`;
}

describe('docs/cli.md', () => {
  it('is made from the help texts: npx vitest run cli-reference --update writes it', async () => {
    await expect(reference()).toMatchFileSnapshot('../docs/cli.md');
  });

  it('lists every exit code', () => {
    const rows = [...readFileSync(join(root, 'docs/cli.md'), 'utf8').matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));

    expect(rows).toEqual(expect.arrayContaining(Object.values(exitCodes)));
  });
});

describe('the command line', () => {
  it('loads commander and few files of its own until a command needs more: help takes a tenth of a second', () => {
    const { imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const fileOf = (from: string, specifier: string) => {
      const room = /^#(\w+)\//.exec(specifier)?.[1];
      if (room !== undefined && `#${room}/*.ts` in imports) return specifier.slice(1);
      return specifier.startsWith('.') ? posix.join(dirname(from), specifier) : null;
    };
    const files = new Set<string>();
    const packages = new Set<string>();
    const visit = (file: string) => {
      if (files.has(file)) return;
      files.add(file);
      const text = readFileSync(join(root, file), 'utf8');
      const atStart = new Set([...text.matchAll(/^(?:import|export)\s+(?!type\s)[^;]*?from\s+'([^']+)';/gms)].map(([, specifier]) => specifier));
      for (const { specifier } of scanImports(text).imports) {
        if (specifier === null || !atStart.has(specifier)) continue;
        const next = fileOf(file, specifier);
        if (next === null) packages.add(specifier);
        else visit(next);
      }
    };
    visit('services/operator/main.ts');

    expect([...packages].filter((name) => !name.startsWith('node:'))).toEqual(['commander']);
    expect(files.size).toBeGreaterThan(12);
    expect(files.size).toBeLessThan(40);
  });

  it('takes no key as an argument', () => {
    const options = commandsBelow(program, []).flatMap(({ name, command }) => command.options.map(({ long }) => `${name} ${long}`));

    expect(options.filter((option) => /--.*(key|secret|password|token)/.test(option) && !option.endsWith(' --key-file'))).toEqual([]);
    expect(options).toContain('chat --key-file');
  });

  it('has --json for every command that prints a result', () => {
    const leaves = commandsBelow(program, []).filter(({ command }) => command.commands.length === 0);
    const without = leaves.filter(({ command }) => !command.options.some(({ long }) => long === '--json')).map(({ name }) => name);

    expect(without).toEqual(['completion']);
    expect(leaves.length).toBeGreaterThan(12);
  });
});
