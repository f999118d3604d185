import type { Command } from 'commander';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { streamLines } from '../stream-lines.ts';
import type { CommandDeps } from './dependencies.ts';

export function addStreamCommands(program: Command, { upgradeStreams, print }: CommandDeps): void {
  program
    .command('streams')
    .description("creates the broker's streams, or changes them to the settings of this release; run it before the processes of a new release start")
    .option('--json', 'the outcome of each stream as JSON')
    .action(async ({ json = false }: { json?: boolean }) => {
      const upgrades = await upgradeStreams();
      if (json) print(JSON.stringify(upgrades, null, 2));
      else for (const line of streamLines(upgrades)) print(line);
      const refused = upgrades.filter(({ outcome }) => outcome === 'refused').map(({ name }) => name);
      if (refused.length > 0)
        throw new SwitchyardError('bus.stream_refused', `these streams could not be changed to what this release needs: ${refused.join(', ')}`);
    });
}
