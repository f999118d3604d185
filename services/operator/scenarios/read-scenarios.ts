import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { engineDocumentsOf } from '#actors/engine/engine-documents.ts';
import { declaredVariables } from '#actors/engine/variables/variable-values.ts';
import type { BundleBody } from '#shared/config/bundle-body.ts';
import { check, configInvalid, type Problem, sentenceOf } from '#shared/config/problems.ts';
import { readDocumentFile } from '#shared/config/read-document-file.ts';
import { quotedName } from '#shared/contracts/printed-name.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { compileSchema } from '#shared/json-schema.ts';
import { type Scenario, scenario } from './scenario.ts';

const SCENARIO_FILE = /^[^.].*\.(?:yaml|yml|json)$/i;
const MAX_SCENARIOS = 1_000;

export interface NamedScenario {
  /** Its name in the folder. */
  file: string;
  scenario: Scenario;
}

/**
 * All scenarios of a folder, by name, checked against an agent's documents.
 * @throws `config.invalid` listing every error with its file and field; also for a folder without scenarios
 */
export async function readScenarios(folder: string, body: BundleBody): Promise<NamedScenario[]> {
  const files = await filesIn(folder);
  const problems: string[] = [];
  const read: NamedScenario[] = [];
  for (const file of files) {
    const { value, problems: unreadable } = await readDocumentFile(join(folder, file));
    const { value: parsed, problems: wrong } = unreadable.length > 0 ? { value: null, problems: [] } : check(scenario, value);
    const unknown = parsed === null ? [] : unknownNames(parsed, body);
    problems.push(...[...unreadable, ...[...wrong, ...unknown].map(sentenceOf)].map((line) => `${join(folder, file)}: ${line}`));
    if (parsed !== null) read.push({ file, scenario: parsed });
  }
  if (problems.length > 0) throw configInvalid(`the folder ${folder}`, problems);
  return read;
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw new SwitchyardError('config.invalid', `${folder}: the folder can't be read`, { cause: error });
  });
  const files = entries.filter((entry) => entry.isFile() && SCENARIO_FILE.test(entry.name)).map(({ name }) => name);
  if (files.length === 0) throw new SwitchyardError('config.invalid', `${folder}: there is no scenario: no file with the ending .yaml, .yml or .json`);
  if (files.length > MAX_SCENARIOS)
    throw new SwitchyardError('config.invalid', `${folder}: there are ${files.length} scenarios, and at most ${MAX_SCENARIOS} are run`);
  return files.sort();
}

/** Names that the documents do not have: such an expectation would always hold, or never. */
function unknownNames({ turns, tools, customer, search }: Scenario, body: BundleBody): Problem[] {
  const documents = engineDocumentsOf(body);
  const policies = new Set(documents?.policies.map(({ id }) => id));
  const steps = new Map(documents?.routineModels.map(({ routine, graph }) => [routine.id, graph.nodes]));
  const servers = documents?.toolServers ?? new Set<string>();
  const problems: Problem[] = [];
  const report = (path: PropertyKey[], expected: string) => problems.push({ path, expected });
  if (search !== undefined && body.manifest.agent_config.search === null) report(['search'], 'the manifest has no search');
  const variables = declaredVariables(body.documents);
  for (const name of Object.keys(customer?.variables ?? {})) {
    if (!variables.has(name)) report(['customer', 'variables', name], 'no variable set of the manifest declares it');
  }
  for (const [id, { input_schema: schema }] of Object.entries(tools)) {
    if (!servers.has(id.slice(0, id.indexOf(':')))) report(['tools', id], 'no policy and no step of the manifest names a tool of this server');
    const invalid = schemaProblem(schema);
    if (invalid !== null) report(['tools', id, 'input_schema'], invalid);
  }
  for (const [index, { expect }] of turns.entries()) {
    const at = (...path: PropertyKey[]) => ['turns', index, 'expect', ...path];
    for (const name of ['apply', 'do_not_apply'] as const) {
      expect.policies?.[name].forEach((id, place) => {
        if (!policies.has(id)) report(at('policies', name, place), `the manifest has no enabled policy ${quotedName(id)}`);
      });
    }
    for (const [routineId, stepId] of Object.entries(expect.steps ?? {})) {
      const nodes = steps.get(routineId);
      if (nodes === undefined) report(at('steps', routineId), 'the manifest has no enabled conversational routine of this name');
      else if (stepId !== null && !nodes.has(stepId)) report(at('steps', routineId), `the routine has no step ${quotedName(stepId)}`);
    }
    for (const name of ['called', 'not_called'] as const) {
      expect.tools?.[name].forEach((id, place) => {
        if (!Object.hasOwn(tools, id)) report(at('tools', name, place), `the scenario has no tool ${quotedName(id)}: its answers stand in \`tools\``);
      });
    }
  }
  return problems;
}

function schemaProblem(schema: Record<string, unknown>): string | null {
  try {
    compileSchema(schema);
    return null;
  } catch (error) {
    if (error instanceof Error) return `is no JSON Schema: ${error.message}`;
    throw error;
  }
}
