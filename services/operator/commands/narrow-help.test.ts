import { Command } from 'commander';
import { expect, it } from 'vitest';
import { narrowHelp } from './narrow-help.ts';

const helpAt = (helpWidth: number) =>
  new Command('ask')
    .configureHelp({ ...narrowHelp, helpWidth })
    .option('--url <address>', 'of the server that answers, if any')
    .helpInformation();

it('has texts below their terms on a terminal of 20 columns, broken between words', () => {
  expect(helpAt(20)).toContain('  --url <address>\n    of the server\n    that answers, if\n    any\n');
});

it('has texts beside their terms where there are columns for both', () => {
  expect(helpAt(80)).toContain('  --url <address>  of the server that answers, if any\n');
});
