import { spawnSync } from 'node:child_process';
import { Command } from 'commander';
import { expect, it } from 'vitest';
import { addCompletionCommand } from './completion-command.ts';

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

/** What bash offers for the last word. */
function offered(...words: string[]): string[] {
  const script = `${scriptFor('bash')}\nCOMP_WORDS=(switchyard "$@")\nCOMP_CWORD=$#\n_switchyard\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = spawnSync('bash', ['-c', script, 'bash', ...words], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((word) => word !== '');
}

it.each([
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
  [['nonsense', 'list', 'x'], []],
])('completes %j in bash with %j', (words, candidates) => {
  expect(offered(...words)).toEqual(candidates);
});

it('has the same for zsh, behind what reads functions of bash', () => {
  expect(scriptFor('zsh')).toBe(`autoload -U +X bashcompinit && bashcompinit\n${scriptFor('bash')}`);
});

it('refuses another shell', () => {
  expect(() => scriptFor('fish')).toThrow(/Allowed choices are bash, zsh/);
});
