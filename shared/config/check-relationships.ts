import { printedName, quotedName } from '../contracts/printed-name.ts';
import { findCycles } from './find-cycles.ts';
import type { ManifestOutline } from './manifest-outline.ts';
import type { NamedDocuments, Report } from './named-documents.ts';

/** Tags and `over_all_routines` expand to many pairs; more than this is a mistake, and slow to check. */
const MAX_PAIRS = 200_000;

/**
 * Checks `context.relationships` and the policies' `depends_on` and `disambiguates`: references exist, priorities and dependencies have no
 * cycle, no entailment applies what its condition displaces or what displaces its condition, and no policy displaces its routine.
 */
export function checkRelationships(outline: ManifestOutline, documents: NamedDocuments, manifestFile: string, report: Report): void {
  const members = membersOf(outline, documents);
  const inManifest = (path: readonly PropertyKey[], message: string) => report(manifestFile, ['agent_config', 'context', 'relationships', ...path], message);
  const priorities = checkPriorities(outline, members, scopesOf(documents), inManifest);
  checkEntailments(outline, members, priorities, inManifest);
  checkDependencies(documents, members, report);
}

type Members = (reference: string) => readonly string[] | null;
type ReportPath = (path: readonly PropertyKey[], message: string) => void;
type Edges = Map<string, Set<string>>;

/** Expands a reference to its policies and routines. Null: none matches. An unreadable list of the manifest accepts every id. */
function membersOf({ context }: ManifestOutline, { policies, routines }: NamedDocuments): Members {
  const known = { policy: idsOf(context.policies), routine: idsOf(context.routines) };
  const tagged = new Map<string, string[]>();
  const tag = (reference: string, labels: readonly string[]) => {
    for (const label of labels) tagged.set(label, [...(tagged.get(label) ?? []), reference]);
  };
  for (const { document } of policies) tag(`policy:${document.id}`, document.labels);
  for (const { document } of routines) tag(`routine:${document.id}`, document.labels);
  // An unreadable document may carry any tag.
  const allRead = policies.length === context.policies?.length && routines.length === context.routines?.length;
  return (reference) => {
    const kind = reference.slice(0, reference.indexOf(':'));
    const name = reference.slice(kind.length + 1);
    if (kind === 'tag') return tagged.get(name) ?? (allRead ? null : []);
    const ids = kind === 'policy' ? known.policy : known.routine;
    return ids === null || ids.has(name) ? [reference] : null;
  };
}

function idsOf(references: ManifestOutline['context']['policies']): ReadonlySet<string | null | undefined> | null {
  return references === null ? null : new Set(references.map((reference) => reference?.id));
}

/** By policy: the routines that it belongs to. */
function scopesOf({ policies, routines }: NamedDocuments): Edges {
  const scopes: Edges = new Map();
  for (const { document } of policies) for (const id of document.routines) addEdge(scopes, `policy:${document.id}`, `routine:${id}`);
  for (const { document } of routines) for (const id of document.policies) addEdge(scopes, `policy:${id}`, `routine:${document.id}`);
  return scopes;
}

/** @returns edges from the higher to what it displaces */
function checkPriorities({ context }: ManifestOutline, members: Members, scopes: Edges, report: ReportPath): Edges {
  const edges: Edges = new Map();
  const routines = (context.routines ?? []).flatMap((reference) => (typeof reference?.id === 'string' ? [`routine:${reference.id}`] : []));
  let pairs = 0;
  for (const [index, priority] of context.relationships?.priorities?.entries() ?? []) {
    if (priority === null) continue;
    const highers = resolve(priority.higher, members, ['priorities', index, 'higher'], report);
    const lowers = priority.over === null ? routines : resolve(priority.over, members, ['priorities', index, 'over'], report);
    if (priority.higher === priority.over) report(['priorities', index], `puts ${quotedName(priority.higher)} above itself`);
    if (priority.over !== null && scopes.get(priority.higher)?.has(priority.over)) {
      report(['priorities', index], `puts ${quotedName(priority.higher)} above ${quotedName(priority.over)}, to which it belongs`);
    }
    pairs += highers.length * lowers.length;
    if (pairs > MAX_PAIRS) {
      report(['priorities'], `expand to more than ${MAX_PAIRS} pairs`);
      return edges;
    }
    // A group that contains the higher one itself, or a routine that it belongs to, means the rest of the group.
    for (const higher of highers) for (const lower of lowers) if (higher !== lower && !scopes.get(higher)?.has(lower)) addEdge(edges, higher, lower);
  }
  for (const cycle of findCycles(edges)) report(['priorities'], `form a cycle: ${cycle.map(printedName).join(' over ')}`);
  return edges;
}

function checkEntailments({ context }: ManifestOutline, members: Members, priorities: Edges, report: ReportPath): void {
  let pairs = 0;
  for (const [index, entailment] of context.relationships?.entailments?.entries() ?? []) {
    if (entailment === null) continue;
    const conditions = resolve(entailment.when, members, ['entailments', index, 'when'], report);
    for (const [position, reference] of entailment.also_apply.entries()) {
      const path = ['entailments', index, 'also_apply', position];
      const implied = resolve(reference, members, path, report);
      pairs += conditions.length * implied.length;
      if (pairs > MAX_PAIRS) {
        report(['entailments'], `expand to more than ${MAX_PAIRS} pairs`);
        return;
      }
      const pairsOfBoth = conditions.flatMap((condition) =>
        implied.flatMap((other): [string, string][] => [
          [condition, other],
          [other, condition],
        ]),
      );
      const contradiction = pairsOfBoth.find(([higher, lower]) => priorities.get(higher)?.has(lower));
      if (contradiction !== undefined) report(path, `contradicts priorities, where ${contradiction.map(quotedName).join(' displaces ')}`);
    }
  }
}

function checkDependencies({ policies }: NamedDocuments, members: Members, report: Report): void {
  const edges: Edges = new Map();
  for (const { file, document } of policies) {
    const inFile: ReportPath = (path, message) => report(file, path, message);
    for (const [index, reference] of document.disambiguates.entries()) resolve(reference, members, ['disambiguates', index], inFile);
    for (const [index, reference] of document.depends_on.entries()) {
      const self = `policy:${document.id}`;
      for (const member of resolve(reference, members, ['depends_on', index], inFile)) {
        // A policy with the label itself does not depend on itself.
        if (member !== self || !reference.startsWith('tag:')) addEdge(edges, self, member);
      }
    }
  }
  for (const cycle of findCycles(edges)) {
    const file = policies.find(({ document }) => `policy:${document.id}` === cycle[0])?.file;
    if (file !== undefined) report(file, ['depends_on'], `forms a cycle: ${cycle.map(printedName).join(' depends on ')}`);
  }
}

function resolve(reference: string, members: Members, path: readonly PropertyKey[], report: ReportPath): readonly string[] {
  const found = members(reference);
  if (found !== null) return found;
  const expected = reference.startsWith('tag:') ? 'no policy or routine of the manifest has the label of' : 'the manifest names no';
  report(path, `${expected} ${quotedName(reference)}`);
  return [];
}

function addEdge(edges: Edges, from: string, to: string): void {
  const existing = edges.get(from);
  if (existing === undefined) edges.set(from, new Set([to]));
  else existing.add(to);
}
