import { expect, it } from 'vitest';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { recordingTracing } from '#shared/telemetry/test-support/recording-tracing.ts';
import { contextBelow, spanIdOf } from '#shared/telemetry/trace-context.ts';
import { noTracing } from '#shared/telemetry/tracing.ts';
import { recordEnded } from './record-ended.ts';
import { testBundle } from './test-support/commands.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const ended = { partition: 1, id: 'trn_1', sessionId: 'ses_1', bundleHash: 'b', parent: PARENT, startedAtMs: 1_000, endedAtMs: 3_000 };
const turn = { ...ended, kind: 'turn' as const, routineId: null, outcome: 'completed' };

it('records a turn under the agent’s name, from its beginning to its end, with the id that its effects carry', async () => {
  const tracing = recordingTracing();
  recordEnded({ tracing, bundleOf: async () => testBundle, log: silentLog })(turn, 7);
  await expect.poll(() => tracing.spans.length).toBe(1);

  const { manifest } = testBundle.body;
  expect(tracing.spans[0]).toMatchObject({
    name: `invoke_agent ${manifest.name}`,
    parent: PARENT,
    spanId: spanIdOf('trn_1'),
    startMs: 1_000,
    endMs: 3_000,
    errorType: null,
  });
  expect(tracing.spans[0]?.attributes).toMatchObject({
    ...{ 'gen_ai.agent.id': manifest.id, 'gen_ai.agent.version': manifest.version, 'gen_ai.conversation.id': 'ses_1' },
    ...{ 'switchyard.turn.id': 'trn_1', 'switchyard.turn.epoch': 7 },
  });
});

it('records a run that failed with its code, also when its configuration can not be read', async () => {
  const tracing = recordingTracing();
  const bundleOf = () => Promise.reject(new Error('gone'));
  recordEnded({ tracing, bundleOf, log: silentLog })({ ...ended, id: 'run_1', kind: 'run', routineId: 'triage', outcome: 'timeout' });
  await expect.poll(() => tracing.spans.length).toBe(1);

  expect(tracing.spans[0]).toMatchObject({ name: 'invoke_agent', spanId: spanIdOf('run_1'), errorType: 'timeout' });
  expect(tracing.spans[0]?.attributes).toMatchObject({ 'switchyard.run.id': 'run_1', 'switchyard.routine.id': 'triage' });
});

it('records a run of a routine with steps as a workflow, by the routine’s title', async () => {
  const tracing = recordingTracing();
  const { body } = testBundle;
  const way: Routine['steps'][number] = { kind: 'fork', id: 'way', description: null, labels: [], metadata: {} };
  const withSteps = body.documents.routines.map((one) => ({ ...one, steps: [way] }));
  const bundleOf = async () => ({ ...testBundle, body: { ...body, documents: { ...body.documents, routines: withSteps } } });
  recordEnded({ tracing, bundleOf, log: silentLog })({ ...ended, id: 'run_2', kind: 'run', routineId: 'triage', outcome: 'succeeded' });
  await expect.poll(() => tracing.spans.length).toBe(1);

  expect(tracing.spans[0]).toMatchObject({ name: 'invoke_workflow triage', errorType: null });
  expect(tracing.spans[0]?.attributes).toMatchObject({ 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.workflow.name': 'triage' });
});

it('records a planning below its turn, with what there is to say of it', async () => {
  const tracing = recordingTracing('redacted');
  const details = (content: string) => ({ attributes: { 'switchyard.iteration': 1, content }, events: [{ name: 'policy.matched', atMs: 2_000 }] });
  const planning = { ...turn, kind: 'plan', id: 'trn_1#plan-1', partOf: 'trn_1', outcome: 'cancelled', details };
  recordEnded({ tracing, bundleOf: async () => testBundle, log: silentLog })(planning, 8);
  await expect.poll(() => tracing.spans.length).toBe(1);

  const [span] = tracing.spans;
  expect(span).toMatchObject({ name: `plan ${testBundle.body.manifest.name}`, parent: contextBelow(PARENT, 'trn_1'), spanId: spanIdOf('trn_1#plan-1') });
  expect(span).toMatchObject({ errorType: null, events: [{ name: 'policy.matched', atMs: 2_000 }] });
  const attributes = {
    'gen_ai.operation.name': 'plan',
    'switchyard.turn.id': 'trn_1',
    'switchyard.outcome': 'cancelled',
    'switchyard.iteration': 1,
    'switchyard.turn.epoch': 8,
  };
  expect(span?.attributes).toMatchObject({ ...attributes, content: 'redacted' });
});

it('reads nothing when there is no collector', () => {
  recordEnded({ tracing: noTracing, bundleOf: () => expect.fail('the configuration was read'), log: silentLog })(turn);
});
