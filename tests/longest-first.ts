import { relative } from 'node:path';
import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';
import { longest } from './test-projects.ts';

/**
 * The order of files: one that takes minutes and begins last leaves the other cores without work. Files that share a process come behind all
 * others, since a process is kept only while such files follow each other.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placed = files.map((file, index) => ({ file, index, group: groupOf(file), place: placeOf(relative(this.ctx.config.root, file.moduleId)) }));
    return placed
      .sort(
        (one, other) =>
          one.group - other.group || Number(isShared(one.file)) - Number(isShared(other.file)) || one.place - other.place || one.index - other.index,
      )
      .map(({ file }) => file);
  }
}

function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder;
}

function isShared({ project }: TestSpecification): boolean {
  return !project.config.isolate;
}

/** Files that the list does not name take little time each. */
function placeOf(path: string): number {
  const place = longest.indexOf(path);
  return place === -1 ? longest.length : place;
}
