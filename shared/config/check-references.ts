import { MACRO_REFERENCE } from '../contracts/documents/macro.ts';
import type { Routine } from '../contracts/documents/routine.ts';
import { quotedName } from '../contracts/printed-name.ts';
import { problemOfCron } from '../cron.ts';
import type { ManifestOutline } from './manifest-outline.ts';
import type { Named, NamedDocuments, Report } from './named-documents.ts';

/**
 * Checks that every id in the manifest and its documents exists: macros, policies, routines, variables, tool servers. An id means the
 * version that the manifest names.
 */
export function checkReferences(outline: ManifestOutline, documents: NamedDocuments, manifestFile: string, report: Report): void {
  const known = knownNames(outline);
  checkManifest(outline, documents, known, (path, message) => report(manifestFile, ['agent_config', ...path], message));
  for (const named of documents.routines) checkRoutine(named, known, report);
  for (const { file, document } of documents.policies) {
    document.routines.forEach((id, index) => {
      expectKnown(known.routines, id, 'routine', (message) => report(file, ['routines', index], message));
    });
    checkTools(document.tools, ['tools'], known, (path, message) => report(file, path, message));
  }
  for (const { file, document } of documents.variable_sets) {
    document.variables.forEach(({ tool_id: toolId, freshness }, index) => {
      const problem = freshness === null ? null : problemOfCron(freshness);
      if (problem !== null) report(file, ['variables', index, 'freshness'], `must be a cron rule: ${problem}`);
      if (toolId !== null) checkTools([toolId], [], known, (_, message) => report(file, ['variables', index, 'tool_id'], message));
    });
  }
  checkMacros(documents, known, report);
}

type ReportPath = (path: readonly PropertyKey[], message: string) => void;

/** Null: the manifest's value is not a list, so no id is reported as unknown. */
interface KnownNames {
  routines: ReadonlySet<string> | null;
  policies: ReadonlySet<string> | null;
  macros: ReadonlySet<string> | null;
  variableSets: ReadonlySet<string> | null;
  toolServers: ReadonlySet<string> | null;
}

function knownNames({ context, mcps }: ManifestOutline): KnownNames {
  const ids = (list: readonly ({ id: string | null } | null)[] | null) =>
    list === null ? null : new Set(list.flatMap((entry) => (entry === null || entry.id === null ? [] : [entry.id])));
  return {
    routines: ids(context.routines),
    policies: ids(context.policies),
    macros: ids(context.macros),
    variableSets: ids(context.variables),
    toolServers: ids(mcps),
  };
}

function checkManifest({ context, webhooks }: ManifestOutline, { routines }: NamedDocuments, known: KnownNames, report: ReportPath): void {
  expectMacros(context.greeting ?? '', known, (message) => report(['context', 'greeting'], message));
  context.reevaluation_tools?.forEach((tool, index) => {
    if (typeof tool?.id === 'string') checkTools([tool.id], [], known, (_, message) => report(['context', 'reevaluation_tools', index, 'id'], message));
  });
  const kinds = new Map(routines.map(({ document }) => [document.id, document.kind]));
  webhooks?.forEach((webhook, index) => {
    if (typeof webhook?.name === 'string' && known.routines?.has(webhook.name)) {
      report(['webhooks', index, 'name'], `must differ from the routine ${quotedName(webhook.name)}, because both are addressed under /webhooks`);
    }
    webhook?.routines?.forEach((id, position) => {
      if (id === null) return;
      const path = ['webhooks', index, 'routines', position];
      expectKnown(known.routines, id, 'routine', (message) => report(path, message));
      if (kinds.get(id) === 'conversational') report(path, `must be an autonomous routine; ${quotedName(id)} is conversational`);
    });
  });
}

function checkRoutine({ file, document }: Named<Routine>, known: KnownNames, report: Report): void {
  document.policies.forEach((id, index) => {
    expectKnown(known.policies, id, 'policy', (message) => report(file, ['policies', index], message));
  });
  checkTools(document.tools, ['tools'], known, (path, message) => report(file, path, message));
  document.steps.forEach((step, index) => {
    if (step.kind === 'chat') expectMacros(step.chat_state, known, (message) => report(file, ['steps', index, 'chat_state'], message));
    if (step.kind === 'tool') checkTools(step.tool_state, ['steps', index, 'tool_state'], known, (path, message) => report(file, path, message));
  });
}

function checkMacros({ macros, variable_sets: sets }: NamedDocuments, known: KnownNames, report: Report): void {
  for (const { file, document } of macros) {
    if (document.variable === null) continue;
    const { set, name } = document.variable;
    expectKnown(known.variableSets, set, 'variable set', (message) => report(file, ['variable', 'set'], message));
    const variables = sets.find((named) => named.document.id === set)?.document.variables;
    if (variables?.every((variable) => variable.name !== name))
      report(file, ['variable', 'name'], `the variable set ${quotedName(set)} has no variable ${quotedName(name)}`);
  }
}

/** Checks the server only: its tools are known once it is reached. */
function checkTools(tools: readonly string[], path: readonly PropertyKey[], { toolServers }: KnownNames, report: ReportPath): void {
  tools.forEach((tool, index) => {
    const server = tool.slice(0, tool.indexOf(':'));
    if (tool.includes(':') && toolServers?.has(server) === false) report([...path, index], `the manifest's mcps name no tool server ${quotedName(server)}`);
  });
}

function expectMacros(text: string, { macros }: KnownNames, report: (message: string) => void): void {
  for (const [, id] of text.matchAll(MACRO_REFERENCE)) {
    if (id !== undefined) expectKnown(macros, id, 'macro', report);
  }
}

function expectKnown(known: ReadonlySet<string> | null, id: string, noun: string, report: (message: string) => void): void {
  if (known?.has(id) === false) report(`the manifest names no ${noun} ${quotedName(id)}`);
}
