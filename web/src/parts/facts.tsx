// What a run was made of and what it made: configuration, model, files, and the commands to go on with.
import { useState } from "preact/hooks";
import type { RunDetail } from "../types";
import { bytes, moment, plain } from "../words";
import { Command, Empty, Search } from "./small";

export function Configuration({ run }: { run: RunDetail }) {
  const [text, setText] = useState("");
  const [isAll, setAll] = useState(false);
  const rows = run.config.filter(
    (each) => (isAll || !each.is_default) && `${each.key} ${plain(each.value)}`.toLowerCase().includes(text.toLowerCase()),
  );
  return (
    <section aria-label="Configuration">
      <div class="bar" role="search">
        <Search label="Search the configuration" value={text} onValue={setText} />
        <label class="check">
          <input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} />
          Defaults too
        </label>
      </div>
      {rows.length ? (
        <table class="card config">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((each) => (
              <tr key={each.key} class={each.is_default ? "default" : ""}>
                <th scope="row">{each.key}</th>
                <td>
                  {plain(each.value)}
                  {each.is_default && <small> default</small>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <Empty>{run.config.length ? "No setting fits." : "The run has no job.json that can be read."}</Empty>
      )}
      {run.model_summary && (
        <>
          <h2>Model</h2>
          <pre class="summary card" tabIndex={0} aria-label="Model summary">
            {run.model_summary}
          </pre>
        </>
      )}
    </section>
  );
}

export function Files({ run }: { run: RunDetail }) {
  const told = new Set(run.commands.map((each) => each.command));
  const links = run.links.filter((link) => !link.command || !told.has(link.command));
  return (
    <section aria-label="Files and commands">
      <h2>What to do with it</h2>
      {told.size || links.length ? (
        <dl class="commands card">
          {run.commands.map((each) => (
            <div key={each.purpose + each.command}>
              <dt>{each.purpose}</dt>
              <dd>
                <Command text={each.command} what={`the command: ${each.purpose}`} />
              </dd>
            </div>
          ))}
          {links.map((link) => (
            <div key={link.name}>
              <dt>{link.name}</dt>
              <dd>
                {link.command && <Command text={link.command} what={`the command: ${link.name}`} />}
                {link.url && /^https?:\/\//.test(link.url) && (
                  <a href={link.url} target="_blank" rel="noopener noreferrer">
                    Open {link.name}
                  </a>
                )}
              </dd>
            </div>
          ))}
        </dl>
      ) : (
        <Empty>Nothing yet: the model is written when the training ends.</Empty>
      )}
      <h2>Files</h2>
      {run.artifacts.length ? (
        <table class="card files">
          <thead>
            <tr>
              <th scope="col">File</th>
              <th scope="col">Kind</th>
              <th scope="col" class="num">
                Size
              </th>
              <th scope="col" class="num when">
                Written
              </th>
            </tr>
          </thead>
          <tbody>
            {run.artifacts.map((file) => (
              <tr key={file.path}>
                <th scope="row" title={file.path}>
                  {file.name}
                </th>
                <td>{file.kind}</td>
                <td class="num">{bytes(file.bytes)}</td>
                <td class="num when">{moment(file.modified)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <Empty>No files yet.</Empty>
      )}
      <p class="hint">
        Below <code>{run.where}</code>
      </p>
    </section>
  );
}

export function Report({ url }: { url: string }) {
  return (
    <section aria-label="Evaluation report">
      <iframe class="report card" src={url} title="Evaluation report" sandbox="" />
    </section>
  );
}
