// A language server on stdio, as an editor talks to it.
// SPDX-License-Identifier: MIT
'use strict';
const {spawn} = require('node:child_process');
const path = require('node:path');
const {pathToFileURL} = require('node:url');

const SETTINGS = {
  yaml: {validate: true, hover: true, completion: true, schemaStore: {enable: false}},
};

class LanguageServer {
  constructor() {
    const main =
        path.join(__dirname, 'node_modules', 'yaml-language-server', 'bin', 'yaml-language-server');
    this.process = spawn(process.execPath, [main, '--stdio'], {stdio: ['pipe', 'pipe', 'inherit']});
    this.process.stdout.on('data', (bytes) => this.receive(bytes));
    this.buffer = Buffer.alloc(0);
    this.last = 0;
    this.answers = new Map();      // number of a request -> who waits for it
    this.diagnostics = new Map();  // address -> who waits for them
  }

  send(message) {
    const body = Buffer.from(JSON.stringify({jsonrpc: '2.0', ...message}));
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  request(method, params) {
    const id = ++this.last;
    this.send({id, method, params});
    return new Promise((resolve, reject) => this.answers.set(id, {resolve, reject}));
  }

  receive(bytes) {
    this.buffer = Buffer.concat([this.buffer, bytes]);
    for (;;) {
      const head = this.buffer.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length =
          Number(/Content-Length: (\d+)/i.exec(this.buffer.toString('latin1', 0, head))[1]);
      if (this.buffer.length < head + 4 + length) return;
      const body = this.buffer.toString('utf8', head + 4, head + 4 + length);
      this.buffer = this.buffer.subarray(head + 4 + length);
      this.handle(JSON.parse(body));
    }
  }

  handle(message) {
    if (message.method === 'workspace/configuration') {
      const result = message.params.items.map((item) => SETTINGS[item.section] ?? {});
      this.send({id: message.id, result});
    } else if (message.method === 'textDocument/publishDiagnostics') {
      const waiting = this.diagnostics.get(message.params.uri);
      this.diagnostics.delete(message.params.uri);
      if (waiting) waiting(message.params.diagnostics);
    } else if (message.method && message.id !== undefined) {
      this.send({id: message.id, result: null});
    } else if (message.id !== undefined) {
      const waiting = this.answers.get(message.id);
      this.answers.delete(message.id);
      if (message.error)
        waiting.reject(new Error(message.error.message));
      else
        waiting.resolve(message.result);
    }
  }

  async start() {
    await this.request('initialize', {
      processId: process.pid,
      rootUri: null,
      capabilities: {
        workspace: {configuration: true, didChangeConfiguration: {dynamicRegistration: true}},
        textDocument: {
          completion: {completionItem: {snippetSupport: true, documentationFormat: ['markdown']}},
          hover: {contentFormat: ['markdown']},
        },
      },
    });
    this.send({method: 'initialized', params: {}});
    this.send({method: 'workspace/didChangeConfiguration', params: {settings: SETTINGS}});
  }

  /// Opens `text` as the file `name`; resolves to its address and what the server finds wrong.
  open(name, text) {
    const uri = pathToFileURL(name).href;
    const diagnostics = new Promise((resolve) => this.diagnostics.set(uri, resolve));
    const textDocument = {uri, languageId: 'yaml', version: 1, text};
    this.send({method: 'textDocument/didOpen', params: {textDocument}});
    return diagnostics.then((found) => ({uri, found}));
  }

  close(uri) {
    this.send({method: 'textDocument/didClose', params: {textDocument: {uri}}});
  }

  async stop() {
    await this.request('shutdown');
    this.send({method: 'exit'});
    this.process.stdin.end();
    await new Promise((resolve) => this.process.on('exit', resolve));
  }
}

module.exports = {LanguageServer};
