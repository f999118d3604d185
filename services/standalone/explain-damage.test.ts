import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { explainDamage } from './explain-damage.ts';

function databaseError(code: string): Error {
  return Object.assign(new Error('could not read block 0'), { code });
}

describe('explainDamage', () => {
  it.each(['XX001', 'XX002', '58P01', '58030'])('reports %s as a damaged database, with its folder and what to do', (code) => {
    expect(explainDamage(databaseError(code), '/srv/data')).toMatchObject({
      code: 'config.invalid',
      message: expect.stringMatching(/database in \/srv\/data is damaged \(could not read block 0\): restore/),
    });
  });

  it('reports a full disk', () => {
    expect(explainDamage(databaseError('53100'), '/srv/data')).toMatchObject({
      message: 'the disk of /srv/data is full: free some space on it, then start again',
    });
  });

  it('leaves every other error unchanged', () => {
    for (const error of [new Error('other'), databaseError('23505'), databaseError('EPIPE'), new SwitchyardError('config.invalid', 'a setting'), 'text']) {
      expect(explainDamage(error, '/srv/data')).toBe(error);
    }
  });
});
