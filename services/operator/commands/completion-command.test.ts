import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, it, onTestFinished } from 'vitest';
import { testProgram } from '../../../scripts/servers/test-programs.mjs';
import { addCompletionCommand } from './completion-command.ts';

const TIMEOUT_MS = 60_000;

function scriptFor(shell: string): string {
  const lines: string[] = [];
  const program = new Command('switchyard').exitOverride().configureOutput({ writeErr: () => {} });
  program.command('start');
  const runs = program.command('runs');
  runs.command('list').option('--status <status>').option('--json');
  runs.command('show');
  addCompletionCommand(program, { print: (line) => lines.push(line) });
  program.parse(['completion', shell], { from: 'user' });
  return lines.join('\n');
}

/** The candidates of bash for the last word. */
function candidatesOfBash(...words: string[]): string[] {
  const script = `${scriptFor('bash')}\nCOMP_WORDS=(switchyard "$@")\nCOMP_CWORD=$#\n_switchyard\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', ...words], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((word) => word !== '');
}

/** The candidates of zsh for the last word at a Tab, in a terminal, with nothing else in its start file. It ends behind that. */
async function candidatesOfZsh(...words: string[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-zsh-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const zsh = await testProgram('zsh');
  writeFileSync(join(folder, 'completion'), scriptFor('zsh'));
  writeFileSync(
    join(folder, '.zshrc'),
    `source ${folder}/completion
compadd() { local -a hits; builtin compadd -O hits "$@"; print -lr -- "" "proposed:"\${^hits}; }
comppostfuncs=(exit)
zle-line-init() { print "line:begun"; }
zle -N zle-line-init`,
  );
  const type = `zmodload zsh/zpty
zpty shell ${zsh} -i
while zpty -r shell out; do [[ $out == *line:begun* ]] && break; done
zpty -w -n shell "$1"$'\\t'
while zpty -r shell out; do print -rn -- $out; done`;
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, ZDOTDIR: folder, TERM: 'dumb' };
  const { stdout, stderr, status } = spawnSync(zsh, ['-f', '-c', type, 'zsh', ['switchyard', ...words].join(' ')], {
    encoding: 'utf8',
    env,
    timeout: TIMEOUT_MS,
  });
  expect([status === null, stderr]).toEqual([false, '']);
  return [...stdout.matchAll(/^proposed:(\S+)\s*$/gm)].map(([, word = '']) => word);
}

const cases: [words: string[], candidates: string[]][] = [
  [['r'], ['runs']],
  [
    ['runs', ''],
    ['list', 'show', '--help'],
  ],
  [
    ['runs', 'list', '--'],
    ['--status', '--json', '--help'],
  ],
  [['runs', 'list', '--json', '--st'], ['--status']],
];

it.each([...cases, [['nonsense', 'list', 'x'], []]])('completes %j in bash with %j', (words, candidates) => {
  expect(candidatesOfBash(...words)).toEqual(candidates);
});

it.each(cases)('completes %j in zsh with %j', { timeout: 2 * TIMEOUT_MS }, async (words, candidates) => {
  expect((await candidatesOfZsh(...words)).sort()).toEqual([...candidates].sort());
});

it('refuses another shell', () => {
  expect(() => scriptFor('fish')).toThrow(/Allowed choices are bash, zsh/);
});
