import type { StreamUpgrade } from '#bus/stream-upgrade.ts';

/** The report of `operator streams`: a line for each stream, and for each changed setting. */
export function streamLines(upgrades: readonly StreamUpgrade[]): string[] {
  return upgrades.flatMap(linesOf);
}

function linesOf(upgrade: StreamUpgrade): string[] {
  switch (upgrade.outcome) {
    case 'unchanged':
      return [`${upgrade.name}: as declared`];
    case 'created':
      return [`${upgrade.name}: created`];
    case 'changed':
      return [
        `${upgrade.name}: changed`,
        ...upgrade.differences.map(({ field, found, declared }) => `  ${field}: ${JSON.stringify(found)} -> ${JSON.stringify(declared)}`),
      ];
    case 'refused':
      return [`${upgrade.name}: not changed, ${upgrade.reason}`];
  }
}
