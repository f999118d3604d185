import { expect, it } from 'vitest';
import { actorIds } from './actor-ids.ts';

it('names a turn as a turn and a run as a run', () => {
  expect([actorIds('trn_01'), actorIds('run_01'), actorIds('evt_01')]).toEqual([{ turn_id: 'trn_01' }, { run_id: 'run_01' }, { event_id: 'evt_01' }]);
});
