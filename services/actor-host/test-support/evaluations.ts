import { afterEach } from 'vitest';
import { evaluationModel, routineKey } from '#actors/engine/evaluation/evaluation-keys.ts';
import { type RoutineEvaluation, routineEvaluation } from '#actors/engine/routines/routine-evaluation.ts';
import { bundleBody } from '#shared/config/bundle-body.ts';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { manifest } from '#shared/contracts/manifest/manifest.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { type EvaluateDocumentsDeps, startDocumentEvaluation } from '../boot/evaluate-documents.ts';

export type Question = Parameters<EvaluateDocumentsDeps['modelCalls']['ask']>[0];

type Asked = Parameters<EvaluateDocumentsDeps['modelCalls']['embed']>[0];

/** 32-bit floats, little endian. */
export function base64Of(...values: number[]): string {
  return Buffer.from(new Float32Array(values).buffer).toString('base64');
}

const opened: { stop(): Promise<void> }[] = [];
const databases: Database[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((evaluation) => evaluation.stop()));
  await Promise.all(databases.splice(0).map((database) => database.close()));
});

const secret = '$' + '{SECRET}';
export const chat = (id: string, text = `Ask for ${id}.`) => ({ kind: 'chat', id, chat_state: text });
export const routine = {
  id: 'booking',
  version: 1,
  conditions: ['The customer books'],
  steps: [chat('people'), chat('time'), chat('confirm')],
  transitions: [
    { from: 'people', to: 'time' },
    { from: 'time', to: 'confirm' },
  ],
};
export const policies = [
  { id: 'leak', version: 1, condition: 'it leaks', action: 'ask where' },
  { id: 'observed', version: 1, condition: 'it smokes' },
];

export function bundleOf(documents: object, llms: object = {}, search: object | null = null, context: object = {}): Bundle {
  const none = { prompts: [], routines: [], policies: [], glossaries: [], macros: [], variable_sets: [] };
  const runtime = { api_key: secret };
  const agent_config = {
    ...{ runtime, platform: { public_key: secret, secret_key: secret }, llms: { default: 'a/main', api_key: secret, ...llms }, search },
    context: { system_prompt: { id: 'prompt', version: 1 }, language: 'match_user', ...context },
  };
  const body = bundleBody.parse({ manifest: manifest.parse({ id: 'a', name: 'A', version: '1', agent_config }), documents: { ...none, ...documents } });
  return { hash: 'h', body };
}

/** With so many terms that a part of them is chosen. */
export function comparedBundle(terms = 60, given: readonly object[] = [], dimensions = 2): Bundle {
  const glossary = { id: 'words', version: 1, terms: Array.from({ length: terms }, (_, index) => ({ name: `name${index}`, description: 'd' })) };
  const table = { hostname: 'db', port: 5_432, password: secret, collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: dimensions };
  return bundleOf({ glossaries: [glossary], policies: given }, {}, table, { glossaries: [{ id: 'words', version: 1 }] });
}

interface ModelRules {
  onAsk?(question: Question): Promise<string | undefined>;
  onEmbed?(asked: Asked): Promise<string[]>;
}

/** A model by rules. Vectors have the length of each text as their first number. */
export function modelOf({ onAsk = async () => undefined, onEmbed = async (about) => about.texts.map((text) => base64Of(text.length, 1)) }: ModelRules = {}) {
  const embedded: Asked[] = [];
  const asked: { model: string; text: string; name: string }[] = [];
  let open = 0;
  let most = 0;
  const ask = async (question: Question): Promise<string> => {
    const text = String(question.messages.at(-1)?.content);
    const name = question.response_format?.type === 'json_schema' ? question.response_format.json_schema.name : '';
    asked.push({ model: question.model, text, name });
    open += 1;
    most = Math.max(most, open);
    try {
      const said = await onAsk(question);
      if (typeof said === 'string') return said;
    } finally {
      open -= 1;
    }
    const lines = text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    if (name === 'evaluate_policy')
      return JSON.stringify({
        continuous: false,
        customer_dependent: true,
        is_agent_intention: false,
        agent_intention_condition: '',
        instruction: 'ask where it leaks',
      });
    const follow_ups = lines.slice(1).map(({ id, condition }) => ({ id, condition: `[${condition}]` }));
    const words = { instruction: `${lines[0].instruction} (alone)`, customer_action: 'known', agent_action: 'asks' };
    return JSON.stringify({ ...words, customer_dependent: true, only_runs_tools: false, follow_ups });
  };
  const embed = async (about: Asked): Promise<string[]> => {
    embedded.push(about);
    return onEmbed(about);
  };
  return { asked, embedded, modelCalls: { ask, embed }, most: () => most };
}

/** Closed after the test. */
export async function migrated(opening: Promise<Database>): Promise<Database> {
  const database = await opening;
  databases.push(database);
  await migrate(database);
  return database;
}

/** Stopped after the test. */
export function start(database: Database, modelCalls: EvaluateDocumentsDeps['modelCalls'], deps: Partial<EvaluateDocumentsDeps> = {}) {
  const bundle = deps.bundle ?? bundleOf({ routines: [routine], policies });
  const times = { lookMs: 20, retriesMs: [], ...deps.times };
  const evaluation = startDocumentEvaluation({
    parallelism: 50,
    database,
    store: evaluationStore(database),
    log: silentLog,
    modelCalls,
    ...deps,
    bundle,
    times,
  });
  opened.push(evaluation);
  return evaluation;
}

/** Of the bundle's first routine; null: it failed. */
export async function evaluationIn(database: Database, bundle: Bundle): Promise<RoutineEvaluation | null | undefined> {
  const [document] = bundle.body.documents.routines;
  const key = document === undefined ? null : routineKey(document, evaluationModel(bundle.body.manifest.agent_config));
  const row = (await evaluationStore(database).read([key ?? ''])).get(key ?? '');
  return row === undefined ? undefined : row.result === null ? null : routineEvaluation.parse(row.result);
}
