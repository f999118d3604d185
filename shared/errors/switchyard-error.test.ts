import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { errorCatalogue, failureOf, SwitchyardError } from './switchyard-error.ts';

describe('docs/errors.md', () => {
  const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const rows = page
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

  it('lists both forms of every code as the catalogue has them, in its order', () => {
    const expected = Object.entries(errorCatalogue).map(([code, { status, retryable, routerType, agentCode }]) => [
      `\`${code}\``,
      String(status),
      retryable ? 'yes' : 'no',
      `\`${routerType}\``,
      `\`${agentCode}\``,
    ]);

    expect(rows.map((row) => row.slice(0, 5))).toEqual(expected);
  });

  it('explains when each happens', () => {
    for (const row of rows) {
      expect(row, row[0]).toHaveLength(6);
      expect(row[5], row[0]).toMatch(/^[A-Z`].{15,}\.$/);
    }
  });
});

describe('failureOf', () => {
  it('masks other errors, since their text may hold anything', () => {
    expect(failureOf(new Error('password=hunter2'))).toEqual({ code: 'internal', message: 'internal error', details: {} });
    expect(failureOf('password=hunter2')).toEqual({ code: 'internal', message: 'internal error', details: {} });
  });

  it('has code, message and details of a SwitchyardError, and neither stack nor cause', () => {
    const error = new SwitchyardError('request.invalid', 'text is missing', { cause: new Error('inner'), details: { field: 'text' } });

    expect(failureOf(error)).toEqual({ code: 'request.invalid', message: 'text is missing', details: { field: 'text' } });
    expect(error.cause).toEqual(new Error('inner'));
  });
});
