import { describe, expect, it } from 'vitest';
import { compareStream } from './compare-stream.ts';
import { defaultSettings } from './settings.ts';
import { declarationsFor } from './streams.ts';

const [declared] = declarationsFor('actor-host', defaultSettings);
if (declared === undefined) throw new Error('the actor host declares no stream');

/** As the broker describes it, with every setting. */
const found = { ...declared, max_msgs: -1, max_msg_size: -1, num_replicas: 1, no_ack: false, sealed: false, deny_purge: false };

describe('compareStream', () => {
  it('finds nothing in a stream with the broker’s defaults, nor in more replicas than it declares', () => {
    expect(compareStream(found, declared)).toEqual({ copying: [], differences: [] });
    expect(compareStream({ ...found, num_replicas: 3, sources: [] }, declared)).toEqual({ copying: [], differences: [] });
  });

  it('names the fields that differ, settings that a declaration leaves to the broker among them', () => {
    expect(compareStream({ ...found, max_bytes: 1, no_ack: true, allow_rollup_hdrs: true }, declared).differences).toEqual([
      { field: 'no_ack', found: true, declared: false },
      { field: 'allow_rollup_hdrs', found: true, declared: false },
      { field: 'max_bytes', found: 1, declared: declared.max_bytes },
    ]);
  });

  it('finds too few replicas', () => {
    expect(compareStream(found, { ...declared, num_replicas: 3 }).differences).toEqual([{ field: 'num_replicas', found: 1, declared: 3 }]);
  });

  it.each([
    ['sources', [{ name: 'OTHER' }]],
    ['mirror', { name: 'OTHER' }],
    ['republish', { src: '>', dest: 'copy.>' }],
    ['subject_transform', { src: 'a.*', dest: 'b.*' }],
  ])('reports that %s copies messages', (field, value) => {
    expect(compareStream({ ...found, [field]: value }, declared).copying).toEqual([field]);
  });
});
